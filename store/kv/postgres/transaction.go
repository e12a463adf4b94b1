package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"nize/store"
	"nize/store/kv"
)

// How many rows of a range are read at once, at first and at most: a caller that reads all
// of it needs few messages, one that stops early reads few rows.
const (
	firstRows = 128
	mostRows  = 2048
	// mostRead limits the bytes of a range in memory, except for a single value.
	mostRead = 8 << 20
	// mostPuts is how many bytes of changes are buffered before they are sent.
	mostPuts = 8 << 20
)

// place identifies a value; the key is a string, so that it can be a map key.
type place struct{ bucket, key string }

type put struct {
	value []byte // nil: the key doesn't exist
	large bool   // value is unset because it is too large to be cached
}

func (p put) size(at place) int { return len(at.bucket) + len(at.key) + len(p.value) + 100 } // overhead of a map entry

type transaction struct {
	e      *Engine
	ctx    context.Context // of the transaction's whole life
	end    func()
	c      *pgxpool.Conn // nil after its end
	write  bool
	err    error // the first error of its server: it can't be committed
	begins bool  // "begin" is not sent yet; it is sent with the first message

	ahead map[place][]byte // of a reader: values that Range read along

	// For a writer.
	puts    map[place]put // not sent yet
	size    int
	fresh   map[place]bool // declared new and not sent yet
	stored  map[place]bool // the server has them, and their next put is not sent yet
	there   map[place]bool // what it sent: whether the server has the key since
	news    map[place]put  // what it read and sent, see known
	noted   int            // their size
	plain   bool           // they were too large to record
	changed map[place]bool // what it sent
	ranges  map[place]span // ranges that it read to their ends, as they were then
}

// fail records an error, after which the server accepts nothing more.
func (t *transaction) fail(err error) error {
	if err != nil {
		err = named(err)
		if t.err == nil {
			t.err = err
		}
		if t.write && errors.Is(err, kv.ErrRetry) {
			t.e.known.setDoubt()
		}
		if errors.Is(err, kv.ErrTaken) {
			t.e.lose()
		}
	}
	return err
}

func (t *transaction) Get(bucket string, key []byte) ([]byte, error) {
	if t.err != nil {
		return nil, t.err
	}
	at := place{bucket, string(key)}
	if value, ok := t.ahead[at]; ok {
		return value, nil
	}
	if t.write {
		if p, ok := t.find(at); ok {
			return p.value, nil
		}
		t.e.known.asks(bucket)
	}
	var value []byte
	results := t.ask("select value from nize_key where bucket = $1 and key = $2", []any{bucket, notNil(key)})
	err := errors.Join(results.QueryRow().Scan(&value), results.Close())
	if t.err != nil { // it could not begin
		return nil, t.err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		value, err = nil, nil
	} else {
		value = notNil(value)
	}
	if err != nil {
		return nil, t.fail(err)
	}
	if t.write {
		t.note(at, put{value: value})
	}
	return value, nil
}

// Ahead reads keys, each with its bucket, that Get is called for next. It reads those that
// are not cached in one message.
func (t *transaction) Ahead(keys [][2]string) error {
	if t.err != nil || !t.write {
		return t.err
	}
	var asked []place
	var questions []any
	for _, key := range keys {
		at := place{key[0], key[1]}
		if _, ok := t.find(at); !ok {
			t.e.known.asks(at.bucket)
			asked = append(asked, at)
			questions = append(questions, "select value from nize_key where bucket = $1 and key = $2", []any{at.bucket, []byte(at.key)})
		}
	}
	if len(asked) < 2 {
		return nil // Get reads it
	}
	results := t.ask(questions...)
	var err error
	for _, at := range asked {
		var value []byte
		if err = results.QueryRow().Scan(&value); errors.Is(err, pgx.ErrNoRows) {
			value, err = nil, nil
		} else {
			value = notNil(value)
		}
		if err != nil {
			break
		}
		t.note(at, put{value: value})
	}
	err = errors.Join(err, results.Close())
	if t.err != nil { // it could not begin
		return t.err
	}
	return t.fail(err)
}

// notNil returns b, or an empty slice for nil; the protocol and callers distinguish them.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (t *transaction) Put(bucket string, key, value []byte) error {
	return t.hold(bucket, key, put{value: append([]byte{}, value...)})
}

func (t *transaction) Delete(bucket string, key []byte) error {
	return t.hold(bucket, key, put{})
}

func (t *transaction) hold(bucket string, key []byte, p put) error {
	if len(key) == 0 || len(key)+len(bucket) > maxKey {
		return fmt.Errorf("%w key: it has %d bytes", store.ErrInvalid, len(key))
	}
	at := place{bucket, string(key)}
	if p.value != nil && !t.fresh[at] && t.has(at) {
		t.stored[at] = true
	}
	t.puts[at] = p
	if t.size += len(key) + len(p.value); t.size > mostPuts {
		return t.send()
	}
	return t.err
}

// send sends the buffered changes in one message.
func (t *transaction) send() error {
	if t.err != nil || len(t.puts) == 0 {
		return t.err
	}
	m := t.message()
	t.queue(m)
	return errors.Join(t.fail(t.deliver(m).Close()), t.err)
}

// fence counts a writing transaction, and fails if another engine has counted one since
// this engine's last.
const fence = "with mine as (update nize_owner set commits = commits + 1 where epoch = $1 and commits = $2 returning 1) select 1 / count(*) from mine"

// message returns the next message to the server, which begins the transaction if that was
// not sent yet. A reading transaction gets its snapshot at its first query.
func (t *transaction) message() *pgx.Batch {
	m := &pgx.Batch{}
	switch {
	case t.begins && t.write:
		m.Queue("begin isolation level serializable")
		m.Queue(fence, t.e.epoch, t.e.commits)
	case t.begins:
		m.Queue("begin isolation level repeatable read read only")
	}
	return m
}

// deliver sends a message and reads the result of its beginning.
func (t *transaction) deliver(m *pgx.Batch) pgx.BatchResults {
	results := t.c.SendBatch(t.ctx, m)
	if !t.begins {
		return results
	}
	t.begins = false
	_, _ = results.Exec() // its error is also that of the next result
	if t.write {
		_, err := results.Exec()
		_ = t.fail(err)
	}
	return results
}

// The statements that change several rows. Each costs the server's log only what it needs: an
// upsert logs a confirmation for each row that it inserts and a lock for each that it updates.
// So keys that are declared new are inserted, and keys that are known to exist are updated.
// Both fail if that is wrong: an insert because of the primary key, an update because the
// logarithm of 0 is an error.
const (
	inserts = "insert into nize_key (bucket, key, value) select * from unnest($1::text[], $2::bytea[], $3::bytea[])"
	upserts = inserts + " on conflict (bucket, key) do update set value = excluded.value"
	updates = `with done as (update nize_key k set value = d.value from unnest($1::text[], $2::bytea[], $3::bytea[]) as d(bucket, key, value)
		where k.bucket = d.bucket and k.key = d.key returning 1) select ln((count(*) = cardinality($1::text[]))::int) from done`
	deletes = "delete from nize_key k using unnest($1::text[], $2::bytea[]) as d(bucket, key) where k.bucket = d.bucket and k.key = d.key"
)

// wrongCount is the server's error code for a logarithm of 0.
const wrongCount = "2201E"

// changes are the arguments of a statement.
type changes struct {
	buckets      []string
	keys, values [][]byte
}

func (c *changes) add(at place, value []byte) {
	c.buckets, c.keys, c.values = append(c.buckets, at.bucket), append(c.keys, []byte(at.key)), append(c.values, value)
}

// queue adds the buffered changes in the order of their keys: neighbours are then inserted
// into the same page of the table and of its index.
func (t *transaction) queue(b *pgx.Batch) {
	var gone, inserted, updated, upserted changes
	order := slices.SortedFunc(maps.Keys(t.puts), func(a, b place) int {
		return cmp.Or(strings.Compare(a.bucket, b.bucket), strings.Compare(a.key, b.key))
	})
	for _, at := range order {
		p := t.puts[at]
		switch {
		case p.value == nil:
			gone.add(at, nil)
		case t.fresh[at]:
			inserted.add(at, p.value)
		case t.stored[at]:
			updated.add(at, p.value)
		default:
			upserted.add(at, p.value)
		}
		t.note(at, p)
		if !t.plain { // otherwise nothing is cached
			t.changed[at] = true
			if p.value == nil || !t.fresh[at] {
				t.there[at] = p.value != nil
			}
		}
	}
	if len(gone.keys) <= 4 { // a single delete is planned once, the bulk delete every time
		for i := range gone.keys {
			b.Queue("delete from nize_key where bucket = $1 and key = $2", gone.buckets[i], gone.keys[i])
		}
	} else {
		b.Queue(deletes, gone.buckets, gone.keys)
	}
	for _, do := range []struct {
		statement string
		changes
	}{{inserts, inserted}, {updates, updated}, {upserts, upserted}} {
		if len(do.keys) > 0 {
			b.Queue(do.statement, do.buckets, do.keys, do.values)
		}
	}
	clear(t.puts)
	clear(t.fresh)
	clear(t.stored)
	t.size = 0
}

// Range implements [kv.Transaction]. Rows are read before do gets the first, so that do may
// use the transaction.
func (t *transaction) Range(bucket string, r kv.Range, do func(k, v []byte) bool) error {
	if t.err != nil {
		return t.err
	}
	of := place{bucket, string(r.Prefix)}
	if t.write {
		if s, ok := t.span(of); ok {
			s.each(r, do)
			return t.err
		}
	}
	if err := t.send(); err != nil {
		return err
	}
	// A small range that was read to its end is cached.
	var whole span
	if t.write && !t.plain && len(r.From) == 0 && r.Before == nil {
		whole = span{}
	}
	room := mostSpan
	r.From, r.Before = notNil(r.From), kv.End(r)
	if bytes.Compare(r.From, r.Prefix) < 0 {
		r.From = r.Prefix
	}
	left, size := r.Limit, firstRows
	if left > 0 {
		size = mostRows
	}
	for {
		if r.Limit = size; left > 0 {
			r.Limit = min(left, size)
		}
		keys, values, cut, err := t.rows(bucket, r)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if room -= len(k) + len(values[i]) + 100; room < 0 || len(values[i]) > largeValue {
				whole = nil
			}
			if whole != nil {
				whole[string(k)] = notNil(values[i])
			}
		}
		last := !cut && len(keys) < r.Limit
		if last && whole != nil { // before do, which may use the transaction
			t.noteRange(of, whole)
		}
		for i, k := range keys {
			if !do(k, notNil(values[i])) {
				return t.err
			}
		}
		if last || left == len(keys) {
			return t.err
		}
		left -= min(left, len(keys))
		if size = min(4*size, mostRows); cut {
			size = len(keys)
		}
		if last := keys[len(keys)-1]; r.Reverse {
			r.Before = last
		} else {
			r.From = append(bytes.Clone(last), 0)
		}
	}
}

// Count returns the number of keys that start with prefix.
func (t *transaction) Count(bucket string, prefix []byte) (n int, err error) {
	if err := errors.Join(t.err, t.send()); err != nil {
		return 0, err
	}
	some, args := "select count(*) from nize_key where bucket = $1 and key >= $2", []any{bucket, notNil(prefix)}
	if end := kv.End(kv.Range{Prefix: prefix}); end != nil {
		some, args = some+" and key < $3", append(args, end)
	}
	results := t.ask(some, args)
	err = errors.Join(results.QueryRow().Scan(&n), results.Close())
	if t.err != nil { // it could not begin
		return 0, t.err
	}
	return n, t.fail(err)
}

// rows reads up to the limit, and the entries of r.Record in the same message; cut reports
// that it stopped earlier, at the limit of bytes in memory.
func (t *transaction) rows(bucket string, r kv.Range) (keys, values [][]byte, cut bool, err error) {
	some, args := " from nize_key where bucket = $1 and key >= $2", []any{bucket, r.From, r.Limit}
	if r.Before != nil {
		some, args = some+" and key < $4", append(args, r.Before)
	}
	if r.Reverse {
		some += " order by bucket desc, key desc limit $3"
	} else {
		some += " order by bucket, key limit $3"
	}
	var results pgx.BatchResults
	along := r.Record != "" && !t.write
	if along {
		n := len(args)
		record := fmt.Sprintf("select r.key, r.value from (select substring(key from $%d) as record%s) as i join nize_key r on r.bucket = $%d and r.key = i.record", n+1, some, n+2)
		results = t.ask("select key, value"+some, args, record, append(slices.Clip(args), r.At+1, r.Record))
	} else {
		results = t.ask("select key, value"+some, args)
	}
	defer func() { err = t.fail(errors.Join(err, results.Close())) }()
	keys, values, cut, err = collect(results)
	if err != nil || !along {
		return keys, values, cut, err
	}
	found, records, _, err := collect(results)
	if t.ahead == nil {
		t.ahead = map[place][]byte{}
	}
	for i, k := range found {
		t.ahead[place{r.Record, string(k)}] = notNil(records[i])
	}
	return keys, values, cut, err
}

// collect reads keys and values up to the limit of bytes.
func collect(results pgx.BatchResults) (keys, values [][]byte, cut bool, err error) {
	rows, err := results.Query()
	if err != nil {
		return nil, nil, false, err
	}
	defer rows.Close() // skips the rest
	for size := 0; rows.Next(); {
		if cut = size > mostRead; cut {
			break
		}
		var k, v []byte
		if err := rows.Scan(&k, &v); err != nil {
			return nil, nil, false, err
		}
		keys, values, size = append(keys, k), append(values, v), size+len(k)+len(v)
	}
	rows.Close()
	return keys, values, cut, rows.Err()
}

// ask sends queries in one message; questions alternate text and arguments.
func (t *transaction) ask(questions ...any) pgx.BatchResults {
	m := t.message()
	for i := 0; i < len(questions); i += 2 {
		m.Queue(questions[i].(string), questions[i+1].([]any)...)
	}
	return t.deliver(m)
}

func (t *transaction) Sequence(bucket string, add uint64) (n uint64, err error) {
	if t.err != nil {
		return 0, t.err
	}
	question, args := "select sequence from nize_bucket where name = $1", []any{bucket}
	if add > 0 {
		question, args = "update nize_bucket set sequence = sequence + $2 where name = $1 returning sequence", append(args, int64(add))
	}
	results := t.ask(question, args)
	err = errors.Join(results.QueryRow().Scan(&n), results.Close())
	return n, t.fail(err)
}

func (t *transaction) Buckets() ([]string, error) {
	results := t.ask("select name from nize_bucket order by name", []any{})
	rows, _ := results.Query() // CollectRows returns the error
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, t.fail(errors.Join(err, results.Close()))
}

func (t *transaction) Make(bucket string) error {
	if t.err != nil {
		return t.err
	}
	return errors.Join(t.fail(t.ask("insert into nize_bucket (name) values ($1) on conflict do nothing", []any{bucket}).Close()), t.err)
}

// Commit implements [kv.Transaction]. It sends one message with the buffered changes. If
// the connection is lost meanwhile, it queries the database for the outcome.
func (t *transaction) Commit() error {
	defer t.Rollback()
	if t.err != nil {
		return t.err
	}
	m := t.message()
	t.queue(m)
	t.e.known.begin(t.changed)
	defer t.e.known.end()
	last := m.Len()
	m.Queue("commit")
	results := t.c.SendBatch(t.ctx, m)
	var (
		tag pgconn.CommandTag
		err error
		pg  *pgconn.PgError
	)
	for i := 0; i <= last && err == nil; i++ {
		if tag, err = results.Exec(); errors.As(err, &pg) && i < last {
			return t.fail(errors.Join(err, results.Close())) // the server executed nothing after it
		}
	}
	err = errors.Join(err, results.Close())
	switch {
	case err == nil && tag.String() != "COMMIT":
		return errors.New("the server rolled a transaction back")
	case err != nil && errors.As(err, &pg) && errors.Is(named(err), kv.ErrRetry):
		return named(err)
	case err != nil:
		if err := t.resolve(err); err != nil {
			return err
		}
	}
	t.e.commits++
	t.e.known.commit(t.news, t.ranges, t.there)
	return nil
}

// resolve returns the outcome of a commit that returned lost instead of a response. A
// transaction that is still running has locked the owner row, so the query returns after
// its end; one that the server has not begun yet will find another count there and fail.
func (t *transaction) resolve(lost error) error {
	t.e.log.Warn("the connection was lost in a commit; asking what became of it", "err", lost)
	t.shut()
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	for {
		commits, err := t.e.committed(ctx)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			t.e.lose()
			return fmt.Errorf("nobody knows whether a commit was made before another nized took over: %w", lost)
		case err == nil && commits == t.e.commits+1:
			return nil
		case err == nil && commits == t.e.commits+2:
			t.e.commits = commits
			return store.Mark(lost, store.ErrNoDatabase)
		case err == nil || ctx.Err() != nil || t.e.closed.Load():
			t.e.lose()
			return fmt.Errorf("nobody knows whether a commit was made: %w", errors.Join(lost, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(beat / 2):
		}
	}
}

// committed returns the number of commits, and first adds two to it if the last commit was
// not made, so that it can't succeed later. If the epoch differs, it returns pgx.ErrNoRows.
func (e *Engine) committed(ctx context.Context) (commits uint64, err error) {
	c, err := pgx.ConnectConfig(ctx, e.config.Copy())
	if err != nil {
		return 0, err
	}
	if _, err = c.Exec(ctx, "set synchronous_commit = on"); err == nil {
		err = c.QueryRow(ctx, "update nize_owner set commits = case commits when $2 then commits + 2 else commits end where epoch = $1 returning commits", e.epoch, e.commits).Scan(&commits)
	}
	return commits, errors.Join(err, c.Close(ctx))
}

// abandon ends the transaction by closing its connection.
func (t *transaction) abandon() {
	if t.c == nil {
		return
	}
	t.shut()
	t.release()
}

func (t *transaction) shut() {
	ctx, end := context.WithTimeout(context.Background(), answer)
	defer end()
	_ = t.c.Conn().Close(ctx) // the server rolls it back
}

// Rollback implements [kv.Transaction]. It doesn't wait for the end of a reading one.
func (t *transaction) Rollback() {
	if t.c == nil {
		return
	}
	if c := t.c.Conn(); c.IsClosed() || c.PgConn().TxStatus() == 'I' {
		t.release()
		return
	}
	roll := func() {
		ctx, end := context.WithTimeout(context.WithoutCancel(t.ctx), answer)
		_, err := t.c.Exec(ctx, "rollback")
		end()
		if err != nil {
			t.abandon()
			return
		}
		t.release()
	}
	if t.write {
		roll()
		return
	}
	ended := *t
	t.c, t = nil, &ended
	t.e.held.Go(roll)
}

func (t *transaction) release() {
	t.c.Release()
	t.c = nil
	t.end()
}
