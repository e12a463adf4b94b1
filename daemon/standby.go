package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"nize/daemon/api"
)

// standsBy is what a nized says that waits for another one to leave the database.
const standsBy = "this nized stands by: another one works on the database, and this one goes on when that is gone"

// extendEvery is how often systemd is told to wait on for the start.
const extendEvery = 10 * time.Second

// standBy answers on the listeners of a nized that stands by: it lives, and does
// nothing. end ends that, so that the daemon listens there itself. On listeners
// that systemd opened who connects waits instead.
func standBy(d *Daemon) (end func(), err error) {
	ctx, stop := context.WithCancel(d.closing)
	var running sync.WaitGroup
	var servers []*http.Server
	end = func() {
		stop()
		for _, s := range servers {
			_ = s.Close() // and its listener
		}
		running.Wait()
		d.public = nil
	}
	running.Go(func() {
		tick := time.NewTicker(extendEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			d.tell("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=" + standsBy)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	if os.Getenv("LISTEN_FDS") != "" {
		return end, nil
	}
	answer := func(handler http.Handler, ln net.Listener, how func(*http.Server, net.Listener) error) {
		s := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, MaxHeaderBytes: 32 << 10}
		servers = append(servers, s)
		running.Go(func() {
			if err := how(s, ln); !errors.Is(err, http.ErrServerClosed) {
				d.log.Error("answering while standing by", "err", err)
			}
		})
	}
	if err := d.listenPublic(); err != nil {
		end()
		return nil, err
	}
	public := http.NewServeMux()
	public.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "standing by") })
	public.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusServiceUnavailable, standsBy) })
	answer(public, d.public, d.servePublic)
	control, err := listenSocket(d.opt.Socket, nil)
	if err != nil {
		end()
		return nil, err
	}
	answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(api.VersionHeader, api.Version)
		failControl(w, &api.Error{Code: "unavailable", Message: standsBy})
	}), control, (*http.Server).Serve)
	return end, nil
}
