package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/standby"
	"nize/store"
	"nize/store/database"
	"nize/store/kv"
	"nize/store/kv/postgres"
	"nize/store/seal"
)

// ErrServer is returned for a restore if the database is on a server.
var ErrServer = store.Mark(errors.New("the database is on a server: restore it there, by the server's own backups"), store.ErrRefused)

// openServer opens the database on a server with the directory's key.
func (d *Directory) openServer(ctx context.Context) (*database.DB, error) {
	keyFile, env := d.file(keyName), d.envKey()
	_, err := os.Stat(keyFile)
	had := err == nil || !env.IsZero()
	engine, err := d.connect(ctx, had)
	if err != nil {
		return nil, err
	}
	master, err := seal.Open(keyFile, env)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the master key: %w", err), engine.Close(false))
	}
	opt := database.Options{Engine: engine, Master: master, Now: d.Now, Log: d.Log.With("component", "store"), Buckets: d.Buckets}
	db, err := database.Open(ctx, opt)
	if errors.Is(err, seal.ErrWrongKey) && env.IsZero() {
		// A rotation may have been interrupted between its commit and the change of the key
		// file.
		if next, nextErr := seal.Open(keyFile+".new", store.Secret{}); nextErr == nil {
			if opt.Engine, nextErr = d.connect(ctx, had); nextErr != nil {
				return nil, nextErr
			}
			opt.Master = next
			if db, nextErr = database.Open(ctx, opt); nextErr != nil {
				return nil, fmt.Errorf("opening the database: %w", err)
			}
			if _, err := seal.Adopt(keyFile, master.ID()); err != nil {
				return nil, errors.Join(err, db.Close())
			}
			opt.Log.Info("a rotation of the master key was finished", "key", next.ID())
			return db, nil
		}
	}
	if err = d.noteMigration(err); err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	return db, nil
}

// connect opens the engine. If the directory has a key but the database is empty, it is
// most likely the wrong database, and must not be treated as a first start.
func (d *Directory) connect(ctx context.Context, had bool) (*postgres.Engine, error) {
	opt := postgres.Options{URL: d.Database, Log: d.Log.With("component", "store"), Says: d.Says, Now: d.Now}
	end := func() {}
	if d.Standby != nil {
		opt.Standby = func(e *postgres.Engine) (err error) {
			where, _, _ := e.Where()
			_, apart := e.Apart()
			if apart != nil && (!had || d.fits(ctx, e) != nil) { // then waiting as a standby may be pointless
				return apart
			}
			if !had {
				return fmt.Errorf("another node is active on %s, and a standby needs its master key: copy its %s into %s first", where, keyName, d.Path)
			}
			if err = d.fits(ctx, e); err != nil {
				return err
			}
			if apart != nil {
				d.Log.Error("this nized is a standby until its clock is right", "database", where, "err", apart)
			} else {
				d.Log.Info("another node is active on the database; this one is a standby until it stops", "database", where)
			}
			leave, err := d.Standby(func(ctx context.Context) (o standby.Owner, err error) {
				if o.Epoch, o.Origin, err = e.Owner(ctx); err != nil {
					return o, err
				}
				if _, apart := e.Apart(); apart != nil {
					o.Unfit = apart.Error()
					return o, nil
				}
				err = d.fits(ctx, e) // another node may migrate, or rotate the keys, meanwhile
				if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNoDatabase) {
					o.Unfit, err = err.Error(), nil
				}
				return o, err
			}, func(ctx context.Context) ([]api.Replica, error) { return d.replicas(ctx, e) })
			if err == nil {
				end = leave
			}
			return err
		}
	}
	e, err := postgres.Open(ctx, opt)
	end()
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	var b kv.Transaction
	if b, err = e.Begin(ctx, false); err == nil {
		var names []string
		names, err = b.Buckets()
		b.Rollback()
		if err == nil && len(names) == 0 && had && !d.New {
			err = fmt.Errorf("it is empty, and the master key in %s says that there was one; to start with an empty one, run once: nized --new", d.Path)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the database: %w", err), e.Close(false))
	}
	where, _, _ := e.Where()
	d.Log.Info("the database is on a server", "database", where)
	d.engine = e
	return e, nil
}

// fits returns an error for anything that would prevent this node from taking over.
func (d *Directory) fits(ctx context.Context, e *postgres.Engine) error {
	master, err := seal.Open(d.file(keyName), d.envKey())
	if err == nil {
		err = database.Check(ctx, e, master)
	}
	return err
}

// Replicas returns the nodes that share the database server; this one is active.
func (d *Directory) Replicas(ctx context.Context) ([]api.Replica, error) {
	if d.engine == nil {
		return nil, nil
	}
	return d.replicas(ctx, d.engine)
}

func (d *Directory) replicas(ctx context.Context, e *postgres.Engine) ([]api.Replica, error) {
	found, err := e.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	_, origin, err := e.Owner(ctx)
	now, list := d.Now(), []api.Replica{}
	for _, r := range found {
		version, at, _ := strings.Cut(r.Says, " ")
		if r.Works && origin != "" {
			at = origin
		}
		list = append(list, api.Replica{Address: at, Version: version, Works: r.Works, ClockApart: r.Apart, Since: now.Add(-r.Since), Seen: now.Add(-r.Seen)})
	}
	return list, err
}

// ClockApart returns by how much this machine's clock is ahead of the database server's,
// and an error if the difference is too large.
func (d *Directory) ClockApart() (time.Duration, error) {
	if d.engine == nil {
		return 0, nil
	}
	return d.engine.Apart()
}

// Hold publishes this node's address for standby nodes. It returns an error as soon as this
// node can no longer write, and nil when ctx ends.
func (d *Directory) Hold(ctx context.Context, origin string) error {
	if d.engine == nil {
		<-ctx.Done()
		return nil
	}
	for d.engine.Advertise(ctx, origin) != nil && ctx.Err() == nil { // the database can't be reached right now
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	select {
	case <-d.engine.Taken():
		return errors.New("another node has taken over the database, or the outcome of this node's last write is unknown; restart nized: it resumes, or becomes a standby")
	case <-ctx.Done():
		return nil
	}
}
