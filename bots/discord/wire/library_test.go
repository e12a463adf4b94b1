package wire

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

// libraryGateway serves the gateway for a session of discordgo's: serve is called with each link,
// counted from 1, and what the session sends arrives in the frames.
func libraryGateway(t *testing.T, serve func(link int, conn *websocket.Conn)) (s *discordgo.Session, frames <-chan discordgo.Event) {
	t.Helper()
	sent := make(chan discordgo.Event, 1000) // more than a test's session sends
	links := 0
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"url": strings.Replace(server.URL, "http", "ws", 1) + "/"})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		links++ // one link after another
		serve(links, conn)
		for {
			var f discordgo.Event
			if conn.ReadJSON(&f) != nil {
				return
			}
			sent <- f
		}
	})
	s, err := discordgo.New("Bot token")
	if err != nil {
		t.Fatal(err)
	}
	s.Client.Transport = rewrite(server.URL)
	s.ShouldReconnectOnError, s.SyncEvents, s.StateEnabled = false, true, false
	t.Cleanup(server.Close)
	return s, sent
}

// rewrite sends all requests to one server.
type rewrite string

func (to rewrite) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(string(to), "http://")
	return http.DefaultTransport.RoundTrip(r)
}

func say(conn *websocket.Conn, frames ...string) {
	for _, f := range frames {
		_ = conn.WriteMessage(websocket.TextMessage, []byte(f)) // a test that misses it fails
	}
}

const (
	hello = `{"op":10,"d":{"heartbeat_interval":41250}}`
	ready = `{"op":0,"s":1,"t":"READY","d":{"session_id":"one","user":{"id":"1"}}}`
)

// TestLibraryGateway shows why the gateway is nize's own: what discordgo's session does
// where nize must not lose an event, stop for ever, or end the process.
func TestLibraryGateway(t *testing.T) {
	t.Run("counts an event before its handler returns", func(t *testing.T) {
		s, frames := libraryGateway(t, func(link int, conn *websocket.Conn) {
			if say(conn, `{"op":10,"d":{"heartbeat_interval":20}}`); link == 1 {
				say(conn, ready, `{"op":0,"s":2,"t":"MESSAGE_CREATE","d":{"id":"5"}}`)
			}
		})
		storing, ended := make(chan bool), make(chan bool, 10) // it may report the end of a link twice
		s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) {
			if e.Type == "MESSAGE_CREATE" {
				<-storing // it is not stored
			}
		})
		s.AddHandler(func(*discordgo.Session, *discordgo.Disconnect) { ended <- true })
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		for f := range frames {
			if string(f.RawData) == "2" { // a heartbeat acknowledges it
				break
			}
		}
		close(storing)
		<-ended // since no heartbeat is acknowledged
		go s.Open()
		for f := range frames {
			if f.Operation == 6 {
				if !strings.Contains(string(f.RawData), `"seq":2`) {
					t.Errorf("it resumes with %s now", f.RawData)
				}
				break
			}
		}
	})
	t.Run("stops for ever if a session can't be resumed", func(t *testing.T) {
		s, _ := libraryGateway(t, func(link int, conn *websocket.Conn) {
			if say(conn, hello); link == 1 {
				say(conn, ready)
				for range 2 { // until it sent its identify and its first heartbeat
					_, _, _ = conn.ReadMessage()
				}
				_ = conn.Close()
			} else {
				say(conn, `{"op":9,"d":false}`)
			}
		})
		ended, opened := make(chan bool, 10), make(chan error, 1)
		s.AddHandler(func(*discordgo.Session, *discordgo.Disconnect) { ended <- true })
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		<-ended
		go func() { opened <- s.Open() }()
		for !isDeadlocked() {
			select {
			case err := <-opened:
				t.Fatal("it returns now: ", err)
			default:
				runtime.Gosched()
			}
		}
	})
	t.Run("reports no close code", func(t *testing.T) {
		s, _ := libraryGateway(t, func(_ int, conn *websocket.Conn) {
			say(conn, hello, ready)
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(CloseToken, "Authentication failed."))
		})
		ended := make(chan *discordgo.Disconnect, 10)
		s.AddHandler(func(_ *discordgo.Session, d *discordgo.Disconnect) { ended <- d })
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		if d := <-ended; reflect.TypeOf(*d).NumField() > 0 {
			t.Errorf("it reports %+v now", d)
		}
	})
	t.Run("panics where nothing recovers", func(t *testing.T) {
		s, _ := libraryGateway(t, func(_ int, conn *websocket.Conn) { say(conn, `null`) })
		defer func() {
			if recover() == nil {
				t.Error("it takes a null frame now")
			}
		}()
		// This frame is read in the caller's goroutine, later ones in one of the session's.
		_ = s.Open()
	})
}

// isDeadlocked reports whether a call of Open waits for the lock that it holds.
func isDeadlocked() bool {
	stacks := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(g, "sync.(*RWMutex).Lock(") && strings.Contains(g, "(*Session).CloseWithCode(") && strings.Contains(g, "(*Session).Open(") {
			return true
		}
	}
	return false
}
