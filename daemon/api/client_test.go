package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"nize/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortDir is a directory for a socket, whose path has about 100 bytes at most:
// that of t.TempDir holds the name of the test.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nize")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve runs a handler on a Unix socket and returns a client of it.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	socket := filepath.Join(shortDir(t), SocketName)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	c := New(socket)
	t.Cleanup(func() { c.Close(); srv.Close(); <-done })
	return c
}

func TestErrorsCrossTheSocket(t *testing.T) {
	for _, row := range Table {
		if row.Err == nil || row.Err == ErrNoDaemon || row.Err == ErrInternal {
			continue
		}
		t.Run(row.Code, func(t *testing.T) {
			cause := fmt.Errorf("server %q: %w", "x", row.Err)
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				e, known := FromError(cause)
				if !known {
					t.Errorf("%v is not known", cause)
				}
				w.WriteHeader(e.Status())
				json.NewEncoder(w).Encode(Failure{e})
			})
			_, err := GetStatus.Call(t.Context(), c, Empty{})
			if row.Code != "invalid_arguments" && row.Err != context.DeadlineExceeded && !errors.Is(err, row.Err) {
				t.Errorf("%v does not wrap %v", err, row.Err)
			}
			want := cause.Error()
			if row.Err == store.ErrNoDatabase {
				want = row.Err.Error() // what stands before it may name the server
			}
			if got := err.Error(); got != want {
				t.Errorf("message %q, want %q", got, want)
			}
			if got := ExitCode(err); got != row.Exit {
				t.Errorf("exit %d, want %d", got, row.Exit)
			}
			if got := ExitCode(cause); got != row.Exit {
				t.Errorf("exit of the cause %d, want %d", got, row.Exit)
			}
		})
	}
}

func TestFromErrorTellsNothingOfUnknownErrors(t *testing.T) {
	e, known := FromError(errors.New("open /etc/shadow: no"))
	if known || strings.Contains(e.Message, "shadow") || e.Status() != 500 {
		t.Errorf("got %+v, known %v", e, known)
	}
	e, known = FromError(fmt.Errorf("calling: %w", &store.CallError{Code: store.CodeRateLimited, Message: store.Plain("slow down")}))
	if !known || e.Code != "rate_limited" || e.Status() != 429 {
		t.Errorf("got %+v, known %v", e, known)
	}
	e, known = FromError(&store.CallError{Code: store.CodeInternal, Message: store.Plain("secret path")})
	if known || strings.Contains(e.Message, "secret") {
		t.Errorf("got %+v, known %v", e, known)
	}
}

func TestEveryCallErrorHasARow(t *testing.T) {
	for _, code := range []store.Code{store.CodeInvalid, store.CodeNotFound, store.CodeRefused, store.CodeExpired, store.CodeCancelled,
		store.CodeRateLimited, store.CodeUnavailable, store.CodeTimeout, store.CodeUnknown, store.CodeTool, store.CodeInternal} {
		if _, ok := rowOf(string(code)); !ok {
			t.Errorf("no row for %s", code)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	c := New(filepath.Join(shortDir(t), "none.sock"))
	defer c.Close()
	_, err := GetStatus.Call(t.Context(), c, Empty{})
	if !errors.Is(err, ErrNoDaemon) || ExitCode(err) != ExitNoDaemon {
		t.Fatalf("got %v", err)
	}
	want := fmt.Sprintf("nized is not running at %s: start it with `nized &` or `systemctl start nized`", c.Socket)
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestAnswersThatAreNoErrorsOfOurs(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   error
		exit   int
	}{
		"unknown route":   {404, "404 page not found\n", ErrNoRoute, ExitFailed},
		"not allowed":     {405, "", ErrNoRoute, ExitFailed},
		"redirect":        {307, "", store.ErrInvalid, ExitUsage},
		"no reason":       {500, "<html>", ErrInternal, ExitFailed},
		"strange code":    {418, `{"error":{"code":"teapot","message":"short and stout"}}`, nil, ExitFailed},
		"not for nizectl": {401, `{"error":{"code":"signed_out","message":"sign in again"}}`, nil, ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			_, err := GetServer.Call(t.Context(), c, ServerRequest{Name: ".."})
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if got := ExitCode(err); got != test.exit {
				t.Errorf("exit %d, want %d", got, test.exit)
			}
		})
	}
}

func TestRequestsSayWhoTheyAre(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != Host || r.Header.Get(VersionHeader) != Version || r.Header.Get("Origin") != "" {
			t.Errorf("host %q, version %q", r.Host, r.Header.Get(VersionHeader))
		}
		if got := r.PathValue("id"); r.URL.Path != "/v1/tools/a:b/c" {
			t.Errorf("path %q (%q)", r.URL.Path, got)
		}
		io.WriteString(w, `{"tool_id":"a:b/c","input_schema":{"n":9007199254740993}}`)
	})
	tool, err := GetTool.Call(t.Context(), c, ToolRequest{ID: "a:b/c"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(tool.InputSchema); got != `{"n":9007199254740993}` {
		t.Errorf("schema %s", got)
	}
}

func TestVersionsFarApartWarnOnce(t *testing.T) {
	theirs := "0.9.0"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(VersionHeader, theirs)
		io.WriteString(w, `{}`)
	})
	var lines []string
	c.Warn = func(line string) { lines = append(lines, line) }
	for range 3 {
		if _, err := GetStatus.Call(t.Context(), c, Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "0.9.0") || strings.Contains(lines[0], "\n") {
		t.Errorf("warned %q", lines)
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"0.1.0", "0.1.9", true}, {"0.1.0", "0.2.0", true}, {"0.2.0", "0.1.0", true}, {"0.1.0", "0.3.0", false},
		{"1.1.0", "0.1.0", false}, {"v0.1.0", "0.2.0-dirty", true}, {"0.1", "0.1.3", true}, {"0.1.0", "", false}, {"devel", "devel", true}, {"devel", "0.1.0", false},
	} {
		if got := Near(test.a, test.b); got != test.want {
			t.Errorf("Near(%q, %q) = %v", test.a, test.b, got)
		}
	}
}

func TestStream(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string
		err  string
	}{
		"lines":          {"{\"text\":\"a\"}\n\n \n{\"text\":\"b\"}\n", []string{"a", "b"}, ""},
		"no end of line": {`{"text":"a"}`, []string{"a"}, ""},
		"empty":          {"", nil, ""},
		"error":          {"{\"text\":\"a\"}\n{\"error\":{\"code\":\"not_found\",\"message\":\"gone\"}}\n{\"text\":\"b\"}\n", []string{"a"}, "gone"},
		"garbage":        {"{\"text\":\"a\"}\n<html>\n", []string{"a"}, "reading the daemon's stream"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, test.body) })
			var got []string
			var last error
			for line, err := range ServerLogs.Call(t.Context(), c, ServerLogsRequest{Name: "x"}) {
				if last = err; err == nil {
					got = append(got, line.Text)
				}
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Errorf("lines (-got +want):\n%s", diff)
			}
			if (test.err == "") != (last == nil) || last != nil && !strings.Contains(last.Error(), test.err) {
				t.Errorf("error %v, want %q", last, test.err)
			}
		})
	}
}

func TestStreamErrorInAValueIsNoEnd(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "{\"error\":\"down\",\"server\":\"x\"}\n{\"summary\":{\"failed\":1}}\n")
	})
	n := 0
	for line, err := range Reindex.Call(t.Context(), c, ReindexRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 && line.Error != "down" {
			t.Errorf("got %+v", line)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d lines", n)
	}
}

func TestStreamEndsWithTheContext(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "{\"text\":\"a\"}\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range ServerLogs.Call(ctx, c, ServerLogsRequest{Name: "x", Follow: true}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("got %v", last)
	}
	// Leaving the loop early closes the connection.
	gone := make(chan struct{})
	c = serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		io.WriteString(w, "{\"text\":\"a\"}\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for range ServerLogs.Call(t.Context(), c, ServerLogsRequest{Name: "x", Follow: true}) {
		break
	}
	<-gone
}

func TestDaemonThatBreaksOff(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	_, err := GetStatus.Call(t.Context(), c, Empty{})
	if err == nil || errors.Is(err, ErrNoDaemon) || strings.Contains(err.Error(), "http://") || ExitCode(err) != ExitFailed {
		t.Errorf("got %v", err)
	}
}

func TestSecretsTravelButDoNotPrint(t *testing.T) {
	p := PutCredentialRequest{Secret: NewSecret("hunter2"), CredentialKey: store.CredentialKey{Scope: "system", Service: "s", Name: "N"}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); got != `{"scope":"system","service":"s","name":"N","secret":"hunter2"}` {
		t.Errorf("wire %s", got)
	}
	if got := fmt.Sprintf("%v %+v %s", p, p, p.Secret); strings.Contains(got, "hunter2") {
		t.Errorf("printed %s", got)
	}
	var back PutCredentialRequest
	if err := json.Unmarshal(b, &back); err != nil || back.Secret.Reveal() != "hunter2" {
		t.Errorf("read %q, %v", back.Secret.Reveal(), err)
	}
}

// An answer that says nothing is no verification, no export and no backup.
func TestIncompleteAnswers(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) })
	ctx := t.Context()
	if _, err := CheckAudit(ctx, c, VerifyAuditRequest{}, nil); err == nil || !strings.Contains(err.Error(), "no result") {
		t.Errorf("a verification without its result: %v", err)
	}
	if _, err := SaveAudit(ctx, c, AuditRequest{}, io.Discard); !errors.Is(err, ErrExport) {
		t.Errorf("an export without its end: %v", err)
	}
	if _, err := SaveBackup(ctx, c, io.Discard); err == nil || !strings.Contains(err.Error(), "incomplete") {
		t.Errorf("a backup without its sum: %v", err)
	}
}

func FuzzDecodeLine(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"not_found","message":"x"}}`))
	f.Add([]byte(`{"message":{"id":"1","kind":"card","card":{"args":{"a":1}}},"state":"idle"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		v, err := decodeLine[ChatEvent](line)
		if err != nil {
			return
		}
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%q was read but can't be written: %v", line, err)
		}
	})
}

// TestMuteSocket: a request to a socket that accepts connections and answers nothing
// ends with an error that names it, while one that a living daemon takes its time for is
// waited for.
func TestMuteSocket(t *testing.T) {
	for name, c := range map[string]struct {
		answers func(conn net.Conn) bool // false: it says nothing more
		mute    bool
	}{
		"nothing": {func(net.Conn) bool { return false }, true},
		"half a response": {func(conn net.Conn) bool {
			if _, err := conn.Read(make([]byte, 1)); err == nil { // before the request it is another protocol
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-")
			}
			return false
		}, true},
		"a hangup":         {func(conn net.Conn) bool { conn.Close(); return false }, false},
		"another protocol": {func(conn net.Conn) bool { fmt.Fprint(conn, "220 mail.example.com ESMTP\r\n"); return false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(shortDir(t), SocketName)
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			var conns []net.Conn
			done := make(chan struct{})
			go func() {
				defer close(done)
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					conns = append(conns, conn)
					c.answers(conn)
				}
			}()
			client := New(socket)
			client.patience = patience{after: time.Millisecond, probe: 100 * time.Millisecond}
			if !c.mute {
				client.patience = patience{after: time.Hour}
			}
			_, err = GetStatus.Call(t.Context(), client, Empty{})
			if err == nil || errors.Is(err, ErrNoDaemon) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
			if c.mute != strings.Contains(fmt.Sprint(err), socket+" accepts connections, but nothing answered") || c.mute != errors.Is(err, ErrTimeout) {
				t.Errorf("error %v, mute %v", err, c.mute)
			}
			client.Close()
			l.Close()
			<-done
			for _, conn := range conns {
				conn.Close()
			}
		})
	}
	t.Run("a slow daemon", func(t *testing.T) {
		t.Parallel()
		probed := make(chan struct{})
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == probePath {
				w.WriteHeader(http.StatusNotFound)
				close(probed)
				return
			}
			<-probed // it takes its time until it was asked whether it lives
			fmt.Fprint(w, "{}")
		})
		c.patience = patience{after: time.Millisecond, probe: time.Hour, rest: time.Hour}
		if _, err := GetStatus.Call(t.Context(), c, Empty{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a caller that leaves", func(t *testing.T) {
		t.Parallel()
		left := errors.New("left")
		ctx, leave := context.WithCancelCause(t.Context())
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			leave(left)
			<-r.Context().Done()
		})
		if _, err := GetStatus.Call(ctx, c, Empty{}); !errors.Is(err, left) {
			t.Errorf("error %v", err)
		}
	})
}

// TestTable: a code has one status, and every type is one of the form for programs.
func TestTable(t *testing.T) {
	types := []string{"invalid_request", "authentication", "not_found", "conflict", "rate_limited", "budget", "upstream", "internal"}
	rows := map[string]Row{}
	for _, row := range Table {
		if !slices.Contains(types, row.Type) {
			t.Errorf("%s has the type %q", row.Code, row.Type)
		}
		if first, ok := rows[row.Code]; ok && (first.Status != row.Status || first.Exit != row.Exit || first.Type != row.Type) {
			t.Errorf("%s has two rows: %+v, %+v", row.Code, first, row)
		}
		if row.Challenge && row.Status != http.StatusUnauthorized {
			t.Errorf("%s asks for credentials with status %d", row.Code, row.Status)
		}
		rows[row.Code] = row
	}
}
