package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"nize/store"
	"nize/store/kv"
)

// How many rows of a range are read at once, at first and at most: who reads
// all of it needs few messages, who stops early few rows.
const (
	firstRows = 128
	mostRows  = 2048
	// mostPuts is how many bytes are held back before they are sent.
	mostPuts = 8 << 20
)

// place is where a value is; a key as text, so that maps take it.
type place struct{ bucket, key string }

type put struct {
	value   []byte
	deleted bool
}

type transaction struct {
	e       *Engine
	ctx     context.Context // of the transaction's whole life
	end     func()
	c       *pgxpool.Conn // nil after its end
	write   bool
	commits int64 // what the owner's row says once it is committed
	err     error // the first of its server: it can't be committed

	puts map[place]put // not sent yet
	size int
}

// fail remembers an error, after which the server takes nothing more.
func (t *transaction) fail(err error) error {
	if err != nil {
		err = named(err)
		if t.err == nil {
			t.err = err
		}
	}
	return err
}

func (t *transaction) Get(bucket string, key []byte) ([]byte, error) {
	if t.err != nil {
		return nil, t.err
	}
	if p, ok := t.puts[place{bucket, string(key)}]; ok {
		return p.value, nil
	}
	var value []byte
	err := t.c.QueryRow(t.ctx, "select value from nize_key where bucket = $1 and key = $2", bucket, notNil(key)).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, t.fail(err)
	}
	return notNil(value), nil
}

// notNil is b; the wire and callers tell nil from empty.
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
	return t.hold(bucket, key, put{deleted: true})
}

func (t *transaction) hold(bucket string, key []byte, p put) error {
	if len(key) == 0 || len(key)+len(bucket) > maxKey {
		return fmt.Errorf("%w key: it has %d bytes", store.ErrInvalid, len(key))
	}
	t.puts[place{bucket, string(key)}] = p
	if t.size += len(key) + len(p.value); t.size > mostPuts {
		return t.send()
	}
	return t.err
}

// send sends what is held back, in one message.
func (t *transaction) send() error {
	if t.err != nil || len(t.puts) == 0 {
		return t.err
	}
	var (
		buckets, goneBuckets  []string
		keys, values, goneKey [][]byte
	)
	for at, p := range t.puts {
		if p.deleted {
			goneBuckets, goneKey = append(goneBuckets, at.bucket), append(goneKey, []byte(at.key))
			continue
		}
		buckets, keys, values = append(buckets, at.bucket), append(keys, []byte(at.key)), append(values, p.value)
	}
	b := &pgx.Batch{}
	if len(goneKey) > 0 {
		b.Queue("delete from nize_key k using unnest($1::text[], $2::bytea[]) as d(bucket, key) where k.bucket = d.bucket and k.key = d.key", goneBuckets, goneKey)
	}
	if len(keys) > 0 {
		b.Queue("insert into nize_key (bucket, key, value) select * from unnest($1::text[], $2::bytea[], $3::bytea[]) on conflict (bucket, key) do update set value = excluded.value", buckets, keys, values)
	}
	clear(t.puts)
	t.size = 0
	return t.fail(t.c.SendBatch(t.ctx, b).Close())
}

// Range implements [kv.Transaction]: rows are read before do sees the first, so
// that it may use the transaction.
func (t *transaction) Range(bucket string, r kv.Range, do func(k, v []byte) bool) error {
	if err := t.send(); err != nil {
		return err
	}
	from, end, left := r.From, kv.End(r), r.Limit
	if bytes.Compare(from, r.Prefix) < 0 {
		from = r.Prefix
	}
	for size := firstRows; ; size = min(4*size, mostRows) {
		if r.Limit > 0 {
			size = min(left, mostRows)
		}
		keys, values, err := t.rows(bucket, from, end, r.Reverse, size)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if !do(k, notNil(values[i])) {
				return t.err
			}
		}
		if left -= len(keys); len(keys) < size || r.Limit > 0 && left == 0 {
			return t.err
		}
		if last := keys[len(keys)-1]; r.Reverse {
			end = last
		} else {
			from = append(bytes.Clone(last), 0)
		}
	}
}

func (t *transaction) rows(bucket string, from, end []byte, reverse bool, limit int) (keys, values [][]byte, err error) {
	query, args := "select key, value from nize_key where bucket = $1 and key >= $2", []any{bucket, notNil(from), limit}
	if end != nil {
		query, args = query+" and key < $4", append(args, end)
	}
	order := " order by bucket, key limit $3"
	if reverse {
		order = " order by bucket desc, key desc limit $3"
	}
	rows, err := t.c.Query(t.ctx, query+order, args...)
	if err != nil {
		return nil, nil, t.fail(err)
	}
	var k, v []byte
	_, err = pgx.ForEachRow(rows, []any{&k, &v}, func() error {
		keys, values = append(keys, k), append(values, v)
		k, v = nil, nil
		return nil
	})
	return keys, values, t.fail(err)
}

func (t *transaction) Sequence(bucket string, add uint64) (n uint64, err error) {
	if t.err != nil {
		return 0, t.err
	}
	if add == 0 {
		err = t.c.QueryRow(t.ctx, "select sequence from nize_bucket where name = $1", bucket).Scan(&n)
	} else {
		err = t.c.QueryRow(t.ctx, "update nize_bucket set sequence = sequence + $2 where name = $1 returning sequence", bucket, int64(add)).Scan(&n)
	}
	return n, t.fail(err)
}

func (t *transaction) Buckets() ([]string, error) {
	rows, err := t.c.Query(t.ctx, "select name from nize_bucket order by name")
	if err != nil {
		return nil, t.fail(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, t.fail(err)
}

func (t *transaction) Make(bucket string) error {
	if t.err != nil {
		return t.err
	}
	_, err := t.c.Exec(t.ctx, "insert into nize_bucket (name) values ($1) on conflict do nothing", bucket)
	return t.fail(err)
}

// Commit implements [kv.Transaction]. Where the connection is lost meanwhile,
// the database is asked what became of it.
func (t *transaction) Commit() error {
	defer t.Rollback()
	if err := t.send(); err != nil {
		return err
	}
	tag, err := t.c.Exec(t.ctx, "commit")
	var pg *pgconn.PgError
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
	t.e.mu.Lock()
	t.e.commits = t.commits
	t.e.mu.Unlock()
	return nil
}

// resolve says what became of a commit that was not answered with lost. The row
// of the owner is locked by a transaction that is still under way, so the answer
// comes after its end.
func (t *transaction) resolve(lost error) error {
	t.e.log.Warn("the connection was lost in a commit; asking what became of it", "err", lost)
	t.abandon()
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	for {
		commits, err := t.e.committed(ctx)
		switch {
		case err == nil && commits == t.commits:
			return nil
		case err == nil && commits == t.commits-1:
			return store.Mark(lost, store.ErrNoDatabase)
		case err == nil || ctx.Err() != nil || t.e.closed.Load():
			return fmt.Errorf("nobody knows whether a commit was made: %w", errors.Join(lost, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(beat / 4):
		}
	}
}

// committed is the count of commits in the row of this owner.
func (e *Engine) committed(ctx context.Context) (commits int64, err error) {
	c, err := pgx.ConnectConfig(ctx, e.config.Copy())
	if err != nil {
		return 0, err
	}
	err = c.QueryRow(ctx, "select commits from nize_owner where epoch = $1 for update", e.epoch).Scan(&commits)
	if errors.Is(err, pgx.ErrNoRows) { // another has it: not to be known
		commits, err = -1, nil
	}
	return commits, errors.Join(err, c.Close(ctx))
}

// abandon ends the transaction with its connection.
func (t *transaction) abandon() {
	if t.c == nil {
		return
	}
	c := t.c.Hijack()
	t.c = nil
	shut, end := context.WithTimeout(context.Background(), beat)
	defer end()
	_ = c.Close(shut) // what it left is rolled back by the server
	t.end()
}

// Rollback implements [kv.Transaction].
func (t *transaction) Rollback() {
	if t.c == nil {
		return
	}
	if t.c.Conn().PgConn().TxStatus() != 'I' {
		if _, err := t.c.Exec(context.WithoutCancel(t.ctx), "rollback"); err != nil {
			t.abandon()
			return
		}
	}
	t.c.Release()
	t.c = nil
	t.end()
}
