package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"nize/store"
)

// MostApart is how far a machine's clock may differ from the database's.
const MostApart = 30 * time.Second

// drift is the maximum relative drift of two properly run clocks.
const drift = 0.01

// clock follows the database's clock.
type clock struct {
	now func() time.Time // this machine's clock; nil: clocks are not compared

	mu    sync.Mutex // guards the fields below
	at    time.Time  // time of the last reading, with its monotonic part; zero: none yet
	time  time.Time  // the database's time at that moment, which never jumps
	apart time.Duration
}

// read records the database's time, requested at asked.
func (c *clock) read(asked time.Time, unix float64) {
	if c.now == nil {
		return
	}
	now := time.Now()
	trip := now.Sub(asked)
	server := time.UnixMicro(int64(unix * 1e6)).Add(trip / 2)
	here := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apart = here.Sub(server).Round(time.Second)
	if c.at.IsZero() {
		c.at, c.time = now, server
		return
	}
	// If the server's clock jumps, nothing changes here; a slightly faster or slower clock
	// is followed.
	passed := now.Sub(c.at)
	reckoned, most := c.time.Add(passed), time.Duration(float64(passed)*drift)
	c.at, c.time = now, reckoned.Add(min(max(server.Sub(reckoned), -most), most))
}

// Time returns the database's time: the first reading plus the monotonic time that passed
// since then. ok is false if clocks are not compared.
func (e *Engine) Time() (t time.Time, ok bool) {
	c := &e.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return t, false
	}
	return c.time.Add(time.Since(c.at)), true
}

// Apart returns how far this machine's clock is ahead of the database's, negative if it is
// behind, and an error if the difference is too large to take over.
func (e *Engine) Apart() (time.Duration, error) {
	e.clock.mu.Lock()
	d := e.clock.apart
	e.clock.mu.Unlock()
	if d.Abs() <= MostApart {
		return d, nil
	}
	how := "ahead of"
	if d < 0 {
		how = "behind"
	}
	return d, store.Mark(fmt.Errorf("the clock of this machine is %s %s the database's, which has to agree within %s: set whichever is wrong, such as by timedatectl set-ntp true", d.Abs(), how, MostApart), errApart)
}

var errApart = errors.New("clocks are apart")

// take tries to acquire the lock, unless this machine's clock differs too much from the
// database's and this engine does not own the database already.
func (e *Engine) take(ctx context.Context, c *pgx.Conn) (taken bool, err error) {
	ctx, end := context.WithTimeout(ctx, answer)
	defer end()
	if e.clock.now == nil || e.epoch != 0 {
		err = c.QueryRow(ctx, "select pg_try_advisory_lock($1)", lockNumber).Scan(&taken)
		return taken, err
	}
	var unix float64
	asked, here := time.Now(), e.clock.now()
	err = c.QueryRow(ctx, "select case when abs(extract(epoch from clock_timestamp()) - $2::float8) <= $3::float8 then pg_try_advisory_lock($1) else false end, extract(epoch from clock_timestamp())::float8",
		lockNumber, float64(here.UnixMicro())/1e6, MostApart.Seconds()).Scan(&taken, &unix)
	if err != nil {
		return false, err
	}
	e.clock.read(asked, unix)
	if _, apart := e.Apart(); apart != nil && !taken {
		err = apart
	}
	return taken, err
}

// apartMark is the prefix of an engine's status while its clock prevents it from taking
// over.
const apartMark = "!"

// name returns the application name of the lock's connection.
func (e *Engine) name() string {
	name := mark
	if _, err := e.Apart(); err != nil {
		name += apartMark
	}
	if e.says != nil {
		name += e.says()
	}
	return name
}

// rename shows other engines whether the clock prevents this engine from taking over.
func (e *Engine) rename(ctx context.Context, c *pgx.Conn, was string) (name string) {
	name = e.name()
	if strings.HasPrefix(name, mark+apartMark) != strings.HasPrefix(was, mark+apartMark) {
		_, _ = c.Exec(ctx, "select set_config('application_name', $1, false)", name) // an error only affects what is displayed
	}
	return name
}
