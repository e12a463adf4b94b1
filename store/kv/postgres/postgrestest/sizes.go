package postgrestest

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"nize/store"
)

// BucketSize is the size of one bucket in its table, in bytes, without indexes and free
// space.
type BucketSize struct {
	Name string
	Rows int
	Data int64 // as stored, which may be compressed
}

// Sizes are the sizes of a database, in bytes.
type Sizes struct {
	Table, Index int64
	Log          int64 // written by the server since its creation
	Buckets      []BucketSize
}

// ReadSizes returns the sizes of the database of an address.
func ReadSizes(address store.Secret) (s Sizes, err error) {
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	c, err := pgx.Connect(ctx, address.Reveal())
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	err = c.QueryRow(ctx, "select pg_table_size('nize_key'), pg_indexes_size('nize_key'), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&s.Table, &s.Index, &s.Log)
	if err != nil {
		return s, err
	}
	rows, err := c.Query(ctx, "select bucket, count(*), sum(pg_column_size(key) + pg_column_size(value)) from nize_key group by bucket order by 3 desc")
	if err != nil {
		return s, err
	}
	s.Buckets, err = pgx.CollectRows(rows, pgx.RowToStructByPos[BucketSize])
	return s, err
}
