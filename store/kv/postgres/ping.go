package postgres

import (
	"context"
	"strings"
	"time"
)

// Ping returns the server's version and the duration of the round trip.
func (e *Engine) Ping(ctx context.Context) (version string, trip time.Duration, err error) {
	ctx, end := context.WithTimeout(ctx, answer)
	defer end()
	c, err := e.readers.Acquire(ctx)
	if err != nil {
		return "", 0, named(err)
	}
	defer c.Release()
	begun := time.Now()
	err = c.Ping(ctx)
	version, _, _ = strings.Cut(c.Conn().PgConn().ParameterStatus("server_version"), " ") // without the packager's suffix
	return version, time.Since(begun), named(err)
}
