package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/kv/postgres/postgrestest"
)

// model is what a database has to have: the values of the bucket "b".
type model map[string]string

func (m model) list(prefix string, reverse bool, limit int) string {
	keys := slices.Sorted(maps.Keys(m))
	if reverse {
		slices.Reverse(keys)
	}
	var b strings.Builder
	for _, k := range keys {
		if strings.HasPrefix(k, prefix) && limit != 0 {
			fmt.Fprintf(&b, "%s=%.8q ", k, m[k])
			limit--
		}
	}
	return b.String()
}

func listRange(b kv.Transaction, prefix string, reverse bool, limit int) (string, error) {
	var l strings.Builder
	err := b.Range("b", kv.Range{Prefix: []byte(prefix), Reverse: reverse, Limit: max(0, limit)}, func(k, v []byte) bool {
		fmt.Fprintf(&l, "%s=%.8q ", k, v)
		return true
	})
	return l.String(), err
}

// modelled is an engine whose answers are compared with a model's.
type modelled struct {
	t      *testing.T
	r      *rand.Rand
	url    store.Secret
	cut    *atomic.Int32
	e      atomic.Pointer[Engine]
	has    model
	values int
	made   int // ids that were new
}

func (m *modelled) key() string {
	return []string{"p/", "p/q/", "r/"}[m.r.IntN(3)] + strconv.Itoa(m.r.IntN(6))
}

func (m *modelled) prefix() string { return []string{"", "p/", "p/q/", "r/", "s/"}[m.r.IntN(5)] }

// read compares one answer with a model.
func (m *modelled) read(who string, b kv.Transaction, has model) error {
	if m.r.IntN(2) == 0 {
		k := m.key()
		v, err := b.Get("b", []byte(k))
		if want, ok := has[k]; err == nil && (string(v) != want || ok != (v != nil)) {
			m.t.Errorf("%s: %s is %.8q (%t), want %.8q (%t)", who, k, v, v != nil, want, ok)
		}
		return err
	}
	prefix, reverse, limit := m.prefix(), m.r.IntN(2) == 0, -1
	if m.r.IntN(2) == 0 {
		limit = 1 + m.r.IntN(3)
	}
	got, err := listRange(b, prefix, reverse, limit)
	if want := has.list(prefix, reverse, limit); err == nil && got != want {
		m.t.Errorf("%s: below %q there is\n%s, want\n%s", who, prefix, got, want)
	}
	return err
}

// change reads and changes something in a transaction, and in its model.
func (m *modelled) change(b kv.Transaction, has model) error {
	switch k := m.key(); m.r.IntN(8) {
	case 0, 1, 2:
		return m.read("a writer", b, has)
	case 3:
		delete(has, k)
		return b.Delete("b", []byte(k))
	case 4: // an id that is new, and what is below it
		id := fmt.Sprintf("s/%04d/", m.made)
		if m.made++; m.r.IntN(8) == 0 && m.made > 1 {
			id = fmt.Sprintf("s/%04d/", m.r.IntN(m.made-1)) // or that is not
		}
		isNew, err := b.New("b", []byte(id))
		if _, there := has[id]; err != nil || !isNew {
			if err == nil && !there {
				m.t.Errorf("%s is not new", id)
			}
			return err
		}
		b.(*transaction).Fresh("b", []byte(id+"x/"))
		has[id] = "new"
		if err := b.Put("b", []byte(id), []byte("new")); err != nil {
			return err
		}
		got, err := listRange(b, id+"x/", false, -1)
		if err == nil && got != "" && has.list(id+"x/", false, -1) == "" {
			m.t.Errorf("below %s, which is new, there is %s", id, got)
		}
		has[id+"x/1"] = "1"
		return errors.Join(err, b.Put("b", []byte(id+"x/1"), []byte("1")))
	case 5:
		keys := [][2]string{{"b", m.key()}, {"b", m.key()}, {"b", m.key()}}
		if err := b.(*transaction).Ahead(keys); err != nil {
			return err
		}
		return m.read("a writer", b, has)
	case 6: // a key that is declared absent, and may exist
		b.(*transaction).Absent("b", []byte(k))
		fallthrough
	default:
		m.values++
		v := strconv.Itoa(m.values)
		if m.r.IntN(10) == 0 {
			v += strings.Repeat("x", largeValue)
		}
		has[k] = v
		return b.Put("b", []byte(k), []byte(v))
	}
}

// write makes a transaction that is committed, undone, or loses its connection.
func (m *modelled) write() {
	e := m.e.Load()
	has, refused := maps.Clone(m.has), errors.New("refused")
	err := update(e, func(b kv.Transaction) error {
		for range 1 + m.r.IntN(6) {
			if err := m.change(b, has); err != nil {
				return err
			}
		}
		m.values++
		has["n"] = fmt.Sprintf("%09d", m.values) // grows with each commit
		if m.r.IntN(6) == 0 {
			return refused
		}
		switch m.r.IntN(25) {
		case 0:
			m.cut.Store(cutBefore)
		case 1, 2:
			m.cut.Store(cutAfter)
		}
		return errors.Join(b.Put("b", []byte("n"), []byte(has["n"])))
	})
	m.cut.Store(0)
	switch {
	case err == nil:
		m.has = has
	case errors.Is(err, refused), errors.Is(err, kv.ErrRetry), errors.Is(err, store.ErrNoDatabase):
	default:
		m.t.Fatal(err)
	}
}

// lose ends the lock's connection, and waits until the engine knows.
func (m *modelled) lose(e *Engine) {
	term := e.Term()
	if err := postgrestest.AskIn(m.url, "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"); err != nil {
		m.t.Fatal(err)
	}
	<-term.Done()
}

// TestModel: whatever is read, written, undone, cut off and taken over, writers, readers
// and memory have what was committed; and memory is never older than what the same reader
// saw in the database before, nor newer than what it sees there afterwards.
func TestModel(t *testing.T) {
	url := postgrestest.New(t)
	var cut atomic.Int32
	var late atomic.Pointer[func()]
	away := new(atomic.Bool) // for the engine that has the database, no server is there
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &cutting{Conn: c, cut: &cut, late: &late}, err
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	m := &modelled{t: t, r: rand.New(rand.NewPCG(seed, 0)), url: url, cut: &cut, has: model{}}
	openNext := func() {
		mine := new(atomic.Bool)
		m.e.Store(openWith(t, Options{URL: url, testOnlyDial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if mine.Load() {
				return nil, errors.New("it is away")
			}
			return dial(ctx, network, addr)
		}}))
		away = mine
	}
	openNext()
	if err := update(m.e.Load(), func(b kv.Transaction) error { return b.Make("b") }); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		inDatabase := func(e *Engine) (n string, ok bool) {
			b, err := e.Begin(t.Context(), false)
			if err != nil {
				return "", false
			}
			defer b.Rollback()
			v, err := b.Get("b", []byte("n"))
			return string(v), err == nil
		}
		for {
			select {
			case <-stop:
				return
			default:
			}
			e, known := m.e.Load(), ""
			before, ok := inDatabase(e)
			if !ok || !e.Recent(func(b kv.Transaction) { v, _ := b.Get("b", []byte("n")); known = string(v) }) {
				continue
			}
			if after, ok := inDatabase(e); known < before || ok && known > after {
				t.Errorf("the database had %q, memory %q, then the database %q", before, known, after)
			}
		}
	})
	defer watching.Wait()
	defer close(stop)
	for step := range 1000 {
		m.write()
		for range 3 {
			e := m.e.Load()
			e.Recent(func(b kv.Transaction) { _ = m.read("memory", b, m.has) })
		}
		if step%10 == 0 {
			if b, err := m.e.Load().Begin(t.Context(), false); err == nil {
				_ = m.read("a reader", b, m.has) // its connection may be lost
				b.Rollback()
			}
		}
		switch step {
		case 300: // the lock is lost, and the same engine has it again
			e := m.e.Load()
			m.lose(e)
			if e.Recent(func(kv.Transaction) {}) {
				t.Error("memory answers without a lease")
			}
			for !e.Current() {
				select {
				case <-time.After(beat / 20):
				case <-e.Taken():
					t.Fatal("it was taken over by nobody")
				}
			}
		case 500, 700: // another one takes over
			old := m.e.Load()
			away.Store(true)
			m.lose(old)
			openNext()
			m.write()
			if old.Recent(func(kv.Transaction) {}) {
				t.Error("memory answers after another engine took over")
			}
			if err := putKey(old, "p/0"); err == nil {
				t.Error("one that was taken over writes")
			}
			old.Close(true)
		}
		if t.Failed() {
			t.Fatal("in step", step)
		}
	}
}
