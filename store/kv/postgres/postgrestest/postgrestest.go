// Package postgrestest creates databases for tests in a PostgreSQL server.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nize/store"
)

// Variable names the environment variable with the address of a server in which tests may
// create databases, such as postgres://nize@/postgres?host=/tmp.
const Variable = "NIZE_TEST_POSTGRES"

var made atomic.Int64

// New returns the address of a new database, which is dropped at the end of the test.
// Without a server it skips the test with a message.
func New(t testing.TB) store.Secret {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip("left out: " + Variable + " names no PostgreSQL")
	}
	address, drop, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// Make creates a database in the server that Variable names; drop drops it, even while it
// is open.
func Make() (address store.Secret, drop func() error, err error) {
	u, err := url.Parse(os.Getenv(Variable))
	if err != nil {
		return address, nil, err
	}
	name := fmt.Sprintf("nize_%d_%d", os.Getpid(), made.Add(1))
	if err := Ask("create database " + name); err != nil {
		return address, nil, err
	}
	u.Path = "/" + name
	return store.NewSecret(u.String()), func() error { return Ask("drop database " + name + " with (force)") }, nil
}

// Ask executes a statement in the database that Variable names.
func Ask(statement string) error { return AskIn(store.NewSecret(os.Getenv(Variable)), statement) }

// AskIn executes a statement in the database of an address.
func AskIn(address store.Secret, statement string) error {
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	c, err := pgx.Connect(ctx, address.Reveal())
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, statement)
	return errors.Join(err, c.Close(ctx))
}
