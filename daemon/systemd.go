package daemon

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	systemd "github.com/coreos/go-systemd/v22/daemon"

	"nize/daemon/settings"
	"nize/daemon/standby"
	"nize/store"
)

// handed are the listeners passed by systemd (sd_listen_fds(3)). A Unix socket is the
// control socket, a TCP one the HTTP listener; names in the unit are ignored.
type handed struct {
	control, public net.Listener
}

// takeListeners takes the listeners that systemd passed and unsets the variables, so that
// children don't inherit them.
func takeListeners() (h handed, err error) {
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	for _, f := range activation.Files(true) {
		ln, err := net.FileListener(f)
		_ = f.Close() // the listener has its own copy
		if err != nil {
			return h, fmt.Errorf("taking over the socket %s from systemd: %w", f.Name(), err)
		}
		into := &h.public
		if _, unix := ln.(*net.UnixListener); unix {
			into = &h.control
		}
		if *into != nil {
			_ = ln.Close() // the error below is what matters
			return h, fmt.Errorf("%w units: systemd hands over two sockets of the kind of %s; one Unix and one TCP socket are served", store.ErrInvalid, f.Name())
		}
		*into = ln
	}
	if h.control != nil {
		h.control.(*net.UnixListener).SetUnlinkOnClose(false) // systemd owns the file
	}
	return h, nil
}

func (h *handed) close() {
	for _, ln := range []net.Listener{h.control, h.public} {
		if ln != nil {
			_ = ln.Close() // nothing was accepted from it
		}
	}
}

// tell sends the service's state to systemd (sd_notify(3)). Without systemd it does
// nothing.
func (d *Daemon) tell(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		d.log.Warn("telling systemd", "err", err)
	}
}

// keepWatchdog pings systemd's watchdog, twice in the interval that the unit's WatchdogSec
// allows. Before each ping it reads from the database, as every request does: a daemon that
// can't do that should be restarted.
func (d *Daemon) keepWatchdog(ctx context.Context) error {
	within, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("reading the time of systemd's watchdog: %w", err)
	}
	if within == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(within / 2)
	defer tick.Stop()
	for {
		if err := d.alive(ctx, within/4); err == nil {
			d.tell(systemd.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			d.log.Error("notifying systemd's watchdog", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tellStandby sends a standby node's state to systemd. The node is ready when it can
// forward requests; until then it extends the start timeout.
func tellStandby(ctx context.Context, d *Daemon, f *standby.Forwarder) {
	every := time.Second
	if within, err := systemd.SdWatchdogEnabled(false); err == nil && within > 0 { // an invalid value is reported when the node becomes active
		every = min(every, within/2)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ready, said := false, ""; ; {
		state := ""
		switch {
		case !ready && f.Wrong() == nil:
			ready, state = true, systemd.SdNotifyReady+"\n"
		case !ready:
			state = "EXTEND_TIMEOUT_USEC=30000000\n"
		}
		if now := says(f); now != said {
			said = now
			state += "STATUS=" + now + "\n"
		}
		d.tell(state + systemd.SdNotifyWatchdog)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Daemon) alive(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if _, err := d.db.ListSettings(ctx, ""); err != nil {
		return fmt.Errorf("reading from the database: %w", err)
	}
	return nil
}

// keepReloading reloads the configuration on every SIGHUP until ctx ends.
func (d *Daemon) keepReloading(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.opt.Hangup:
			d.reload()
		}
	}
}

// reload rereads configuration and certificate. If they are invalid, nothing changes.
// Changes that need a restart are logged as such.
func (d *Daemon) reload() {
	d.tell(systemd.SdNotifyReloading + "\n" + systemd.SdNotifyMonotonicUsec())
	defer d.tell(systemd.SdNotifyReady)
	if d.cert != nil {
		if err := d.cert.load(); err != nil {
			d.log.Error("the old certificate remains in use", "err", err)
		}
	}
	changed, err := d.layers.Reload(func(e settings.Entries) error { return d.ops.entries.Apply(d.closing, e) })
	if err != nil {
		d.log.Error("the configuration was not reloaded", "err", err)
		return
	}
	d.hosts.Store(d.newHostCheck())
	d.edge.setLimits(d.limits())
	for _, key := range changed {
		if settings.NeedsRestart(key) {
			d.log.Warn("a changed setting needs a restart", "key", key)
		}
		d.settingChanged(key)
	}
	d.log.Info("the configuration was reloaded", "file", d.layers.File(), "changed", changed)
}
