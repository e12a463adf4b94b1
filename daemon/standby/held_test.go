package standby

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHolder: requests are served while there is a lease; when it ends, those under way are
// answered whatever their handlers wait for.
func TestHolder(t *testing.T) {
	ended, over := context.WithCancel(context.Background())
	over()
	for _, c := range []struct {
		name    string
		term    context.Context // nil: one that ends when the handler says so
		handler func(w http.ResponseWriter, r *http.Request, end func(), hang <-chan struct{})
		want    string
	}{
		{"no end", context.Background(), func(w http.ResponseWriter, _ *http.Request, _ func(), _ <-chan struct{}) {
			w.Header().Set("X-Own", "1")
			_, _ = io.WriteString(w, "served")
		}, `200 "served" own "1"`},
		{"held", nil, func(w http.ResponseWriter, _ *http.Request, _ func(), _ <-chan struct{}) {
			w.Header().Set("X-Own", "1")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "served")
		}, `201 "served" own "1"`},
		{"nothing written", nil, func(w http.ResponseWriter, _ *http.Request, _ func(), _ <-chan struct{}) {
			w.Header().Set("X-Own", "1")
		}, `200 "" own "1"`},
		{"over", ended, func(w http.ResponseWriter, _ *http.Request, _ func(), _ <-chan struct{}) {
			t.Error("it is served")
		}, `503 "refused, begun false" own ""`},
		{"it answers by itself", nil, func(w http.ResponseWriter, r *http.Request, end func(), _ <-chan struct{}) {
			end()
			<-r.Context().Done()
			w.WriteHeader(http.StatusConflict)
		}, `409 "" own ""`},
		{"it leaves as its client seems to", nil, func(w http.ResponseWriter, r *http.Request, end func(), _ <-chan struct{}) {
			w.Header().Set("X-Own", "1")
			end()
			<-r.Context().Done()
		}, `503 "refused, begun true" own ""`},
		{"it hangs", nil, func(w http.ResponseWriter, _ *http.Request, end func(), hang <-chan struct{}) {
			w.Header().Set("X-Own", "1")
			end()
			<-hang
			if _, err := io.WriteString(w, "late"); err != errLeft {
				t.Errorf("the late answer: %v", err)
			}
		}, `503 "refused, begun true" own ""`},
		{"it hangs in its answer", nil, func(w http.ResponseWriter, _ *http.Request, end func(), hang <-chan struct{}) {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
			end()
			<-hang
		}, `cut`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hang := make(chan struct{})
			term, end := context.WithCancel(context.Background())
			h := &Holder{Term: func() context.Context { return term }, Refuse: func(w http.ResponseWriter, _ *http.Request, begun bool) {
				refuse(w, "not_ready", fmt.Sprintf("refused, begun %t", begun))
			}}
			if c.term != nil {
				h.Term = func() context.Context { return c.term }
			}
			s := httptest.NewServer(h.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.handler(w, r, end, hang) })))
			got := ""
			resp, err := http.Get(s.URL)
			if err == nil {
				var body []byte
				body, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				got = fmt.Sprintf("%d %q own %q", resp.StatusCode, trim(body), resp.Header.Get("X-Own"))
			}
			if err != nil {
				got = "cut"
			}
			if got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
			close(hang) // only now may the handler go on
			h.Wait()
			s.Close()
			end()
		})
	}
}

func trim(b []byte) string {
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return string(b)
}
