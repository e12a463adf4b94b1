package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"nize/daemon/api"
	"nize/store"
)

// exportChunk is how much of an export is sent at once.
const exportChunk = 256 << 10

// exportAudit sends the trail, or what is selected of it, in the form that
// package api describes. That somebody took it away is an event, and the newest
// one that an export can hold.
func (d *Daemon) exportAudit(ctx context.Context, by store.Caller, r *http.Request, send func(any) error) error {
	p := r.URL.Query()
	q, err := d.eventQuery(ctx, p)
	if err != nil {
		return err
	}
	filter := map[string]string{}
	for name := range maps.Keys(p) {
		filter[name] = p.Get(name)
	}
	data, err := json.Marshal(filter)
	if err != nil {
		return fmt.Errorf("noting the export: %w", err)
	}
	d.db.AddEvent(by, store.Event{Kind: "audit.export", Subject: "events", Data: data})
	if err := d.db.Flush(ctx); err != nil {
		return fmt.Errorf("noting the export: %w", err)
	}
	head, err := d.newestEvent(ctx)
	if err != nil {
		return err
	}
	end := api.Export{At: d.now().UTC(), Filter: filter, Head: head.Seq, Chain: head.Chain}
	var (
		sum   = sha256.New()
		chunk bytes.Buffer
		enc   = json.NewEncoder(&chunk)
	)
	enc.SetEscapeHTML(false)
	flush := func() error {
		sum.Write(chunk.Bytes())
		err := send(lines(bytes.Clone(chunk.Bytes())))
		chunk.Reset()
		return err
	}
	add := func(v any) error {
		e, ok := v.(store.Event)
		if !ok {
			return nil
		}
		if end.Events++; end.First == 0 {
			end.First = e.Seq
		}
		end.Last = e.Seq
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("encoding event %d: %w", e.Seq, err)
		}
		if chunk.Len() < exportChunk {
			return nil
		}
		return flush()
	}
	if q.Limit > 0 {
		err = d.sendNewest(ctx, q, head.Seq, add)
	} else {
		if q.Before == 0 || q.Before > head.Seq {
			q.Before = head.Seq + 1
		}
		err = d.eachEvent(ctx, q, func(e store.Event) error { return add(e) })
	}
	if err == nil && chunk.Len() > 0 {
		err = flush()
	}
	if err != nil {
		return err
	}
	end.SHA256 = hex.EncodeToString(sum.Sum(nil))
	last, err := end.Line(d.db.SignExport)
	if err != nil {
		return err
	}
	return send(lines(last))
}
