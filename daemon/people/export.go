package daemon

import (
	"context"
	"errors"
	"fmt"

	"nize/store"
)

// picture is one that came with a message, in an export.
type picture struct {
	Thread string `json:"thread"`
	Turn   int    `json:"turn"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Data   []byte `json:"data"` // base64
}

// pictures sends those of a turn that are kept still.
func (e *exporter) pictures(ctx context.Context, t store.Turn) error {
	for _, f := range t.Files {
		if f.Kind != store.ImageFile {
			continue
		}
		data, err := e.d.db.GetFile(ctx, t.Thread, f.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // there was no room for it any more
		}
		if err != nil {
			return fmt.Errorf("exporting each picture: %w", err)
		}
		if err := e.put("picture", picture{Thread: t.Thread, Turn: t.N, ID: f.ID, Name: f.Name, Type: f.Type, Data: data}); err != nil {
			return err
		}
	}
	return nil
}
