package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/daemon/settings"
	"nize/daemon/standby"
)

// layersOf returns the given layers, or those of the plain options.
func layersOf(opt Options) (*settings.Layers, error) {
	if opt.Layers != nil {
		return opt.Layers, nil
	}
	return settings.Open(settings.Sources{
		Flags: map[string]string{"data_dir": opt.DataDir, "listen": opt.Listen, "socket.path": opt.Socket}, Env: opt.Env, NoFile: true, Level: opt.Level, Keys: Settings(), IsChannel: isChannel(opt.platforms()),
	})
}

// Configure reads flags, environment and configuration file, and returns the resulting
// options; the caller adds Log, Now and Hangup.
func Configure(src settings.Sources) (Options, error) {
	src.Level, src.IsChannel, src.Keys = new(slog.LevelVar), isChannel(platforms), Settings()
	l, err := settings.Open(src)
	if err != nil {
		return Options{}, err
	}
	return Options{DataDir: l.Get("data_dir"), Listen: l.Get("listen"), Socket: l.Get("socket.path"), Env: src.Env, Layers: l, Level: src.Level}, nil
}

// listen opens the HTTP listener and the control socket unless they are open already:
// systemd may have opened them, and a standby node keeps those it used.
func (d *Daemon) listen() error {
	if err := d.listenPublic(); err != nil {
		return err
	}
	d.hosts.Store(d.newHostCheck())
	if err := noteAddr(d); err != nil {
		return err
	}
	return d.listenControl()
}

// listenPublic validates the address before it listens.
func (d *Daemon) listenPublic() (err error) {
	if file := d.layers.Get("tls.cert"); file != "" {
		if d.cert, err = openCertificate(file, d.layers.Get("tls.key")); err != nil {
			return err
		}
		d.cert.log, d.cert.now = d.log.With("component", "tls"), d.now
	}
	addr, given := (*net.TCPAddr)(nil), d.public != nil
	if given {
		addr, _ = d.public.Addr().(*net.TCPAddr)
		if addr == nil {
			return fmt.Errorf("systemd hands over %s, which is no TCP socket", d.public.Addr())
		}
	} else if addr, err = net.ResolveTCPAddr("tcp", d.opt.Listen); err != nil {
		return fmt.Errorf("finding the address %s: %w; choose another with --listen", d.opt.Listen, err)
	}
	if err := checkListen(addr, d.cert != nil, d.layers.Get("insecure_listen") == "true"); err != nil {
		return err
	}
	if !given {
		d.public, err = net.Listen("tcp", addr.String())
		if errors.Is(err, syscall.EADDRINUSE) {
			return taken(fmt.Sprintf("%s is already in use, most likely by another nized: stop it, or choose another address with --listen", d.opt.Listen))
		}
		if err != nil {
			return fmt.Errorf("listening on %s: %w; choose another address with --listen", d.opt.Listen, err)
		}
	}
	d.host, d.port, err = net.SplitHostPort(d.public.Addr().String())
	if err != nil {
		return fmt.Errorf("reading the listener's address: %w", err)
	}
	return nil
}

// listenControl opens the control socket, also for the members of socket.group if that is
// set.
func (d *Daemon) listenControl() error {
	var members *group
	if name := d.layers.Get("socket.group"); name != "" {
		g, err := findGroup(name)
		if err != nil {
			return err
		}
		members = &g
	}
	if d.peers != nil { // this node is active
		d.peers.members = members
	}
	if d.control != nil {
		d.opt.Socket = d.control.Addr().String() // its owner and mode come from the unit
		return noteSocket(d)
	}
	var err error
	if d.control, err = listenSocket(d.opt.Socket, members); err != nil {
		return err
	}
	return noteSocket(d)
}

// noteSocket writes the control socket's path to the data directory, for clients that know
// only that directory.
func noteSocket(d *Daemon) error {
	path, err := filepath.Abs(d.opt.Socket)
	if err != nil {
		return fmt.Errorf("finding the control socket: %w", err)
	}
	return noteAt(d, api.SocketNote, path)
}

// standsBy is a standby node's status.
const standsBy = "this nized is a standby: another node is active on the database, and this one takes over when it stops"

func says(f *standby.Forwarder) string {
	said := standsBy
	if at := f.Origin(); at != "" {
		said += "; it is at " + at
	}
	if err := f.Wrong(); err != nil {
		said += "; " + err.Error()
	}
	return said
}

// standBy serves both listeners of a standby node until end is called.
func standBy(d *Daemon, owner func(context.Context) (standby.Owner, error), all func(context.Context) ([]api.Replica, error)) (end func(), err error) {
	if err := d.listenPublic(); err != nil {
		return nil, err
	}
	if err := noteAddr(d); err != nil {
		return nil, err
	}
	if err := d.listenControl(); err != nil {
		return nil, err
	}
	forward := standby.New(owner, d.log.With("component", "standby"))
	d.hosts.Store(d.newHostCheck())
	d.edge.setLimits(standbyLimits(d.limits()))
	public := d.publicServer(standbyHandler(d.hosts.Load(), forward))
	control := d.controlServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, api.Version)
		w.Header().Set("Connection", "close") // the next request may be for the active daemon
		answer := &api.Error{Code: "unavailable", Message: says(forward)}
		if at, _ := r.Context().Value(peerKey{}).(atSocket); r.URL.Path == api.GetStatus.Path && at.err == nil && (at.uid == 0 || at.uid == uint32(os.Getuid())) {
			answer.Replicas, _ = all(r.Context()) // on an error, the response goes without them
		}
		failure.Control.Write(w, answer)
	}))
	leave, standing := forward.Answer(d.closing, standby.Served{Listener: d.public, Server: public, Serve: d.servePublic}, standby.Served{Listener: d.control, Server: control, Serve: d.serveControl})
	told, untell := context.WithCancel(d.closing)
	standing.Go(func() { tellStandby(told, d, forward) })
	d.standing = standing
	return func() {
		untell()
		leave()
	}, nil
}

// where returns this node's name for lists: its advertised address, or its machine.
func where(d *Daemon) string {
	name, _ := os.Hostname()
	if d.public == nil { // not listening yet
		return name
	}
	return cmp.Or(advertised(d), name)
}

// advertised returns the origin at which other nodes reach this one, or "".
func advertised(d *Daemon) string {
	if given := d.layers.Get("advertise"); given != "" {
		return given
	}
	at, ok := d.public.Addr().(*net.TCPAddr)
	if !ok || at.IP.IsUnspecified() || d.opt.Database.IsZero() {
		return ""
	}
	if d.cert != nil {
		return "https://" + d.addr()
	}
	return "http://" + d.addr()
}
