package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"syscall"

	"nize/daemon/settings"
)

// layersOf are the layers given, or what New's plain options say.
func layersOf(opt Options) (*settings.Layers, error) {
	if opt.Layers != nil {
		return opt.Layers, nil
	}
	return settings.Open(settings.Sources{
		Flags: map[string]string{"data_dir": opt.DataDir, "listen": opt.Listen, "socket.path": opt.Socket}, Env: opt.Env, NoFile: true, Level: opt.Level, IsChannel: isChannel(opt.platforms()),
	})
}

// Configure reads flags, environment and configuration file, and returns the
// options that follow from them; the caller adds Log, Now and Hangup.
func Configure(src settings.Sources) (Options, error) {
	src.Level, src.IsChannel = new(slog.LevelVar), isChannel(platforms)
	l, err := settings.Open(src)
	if err != nil {
		return Options{}, err
	}
	return Options{DataDir: l.Get("data_dir"), Listen: l.Get("listen"), Socket: l.Get("socket.path"), Env: src.Env, Layers: l, Level: src.Level}, nil
}

// listen opens the HTTP listener and the control socket, or takes those that
// systemd opened.
func (d *Daemon) listen() error {
	handed, err := takeListeners()
	if err != nil {
		return err
	}
	d.control, d.public = handed.control, handed.public // closeAll closes them
	if err := d.listenPublic(); err != nil {
		return err
	}
	d.door.Store(d.newDoor())
	if err := writeAddr(filepath.Join(d.opt.DataDir, "nized.addr"), d.addr()); err != nil {
		return err
	}
	return d.listenControl()
}

// listenPublic refuses before it listens, not after.
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
			return taken(fmt.Sprintf("somebody listens on %s already, most likely another nized: stop it, or choose another address with --listen", d.opt.Listen))
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

// listenControl opens the control socket, for the members of socket.group too
// if there is one.
func (d *Daemon) listenControl() error {
	var members *group
	if name := d.layers.Get("socket.group"); name != "" {
		g, err := findGroup(name)
		if err != nil {
			return err
		}
		members = &g
	}
	d.peers.members = members
	if d.control != nil {
		d.opt.Socket = d.control.Addr().String()
		return nil // its owner and mode are the unit's
	}
	var err error
	d.control, err = listenSocket(d.opt.Socket, members)
	return err
}
