package postgres

import (
	"context"
	"strings"
	"time"
)

// Ping asks the server for its version, and says how long the round trip took.
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
	version, _, _ = strings.Cut(c.Conn().PgConn().ParameterStatus("server_version"), " ") // before who packaged it
	return version, time.Since(begun), named(err)
}
