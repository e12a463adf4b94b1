package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"nize/daemon/api"
	"nize/store"
)

// exportChunk is the size of the pieces in which an export is sent.
const exportChunk = 256 << 10

// Export sends the trail, or the selected part of it, in the form that package api
// describes. The export is itself recorded as an event, which is the newest one that it can
// contain. As in [Audit.Read], contents are omitted unless there is a reason, which is
// recorded too.
func (a *Audit) Export(ctx context.Context, by store.Caller, req api.AuditRequest, send func(api.Encoded) error) error {
	q, err := a.query(ctx, req)
	if err != nil {
		return err
	}
	asked, err := api.Query(req)
	if err != nil {
		return err
	}
	filter := map[string]string{}
	for name := range asked {
		filter[name] = asked.Get(name)
	}
	data, err := json.Marshal(filter)
	if err != nil {
		return fmt.Errorf("noting the export: %w", err)
	}
	a.Store.AddEvent(by, store.Event{Kind: "audit.export", Subject: "events", Data: data})
	if err := a.Store.Flush(ctx); err != nil {
		return fmt.Errorf("noting the export: %w", err)
	}
	head, err := a.newest(ctx)
	if err != nil {
		return err
	}
	end := api.Export{At: a.Now().UTC(), Filter: filter, Head: head.Seq, Chain: head.Chain}
	var (
		sum   = sha256.New()
		chunk bytes.Buffer
		enc   = json.NewEncoder(&chunk)
	)
	enc.SetEscapeHTML(false)
	flush := func() error {
		sum.Write(chunk.Bytes())
		err := send(bytes.Clone(chunk.Bytes()))
		chunk.Reset()
		return err
	}
	add := func(e store.Event) error {
		if req.Reason == "" {
			e = withoutContents(by, e)
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
		err = a.sendNewest(ctx, q, head.Seq, add)
	} else {
		if q.Before == 0 || q.Before > head.Seq {
			q.Before = head.Seq + 1
		}
		err = a.each(ctx, q, add)
	}
	if err == nil && chunk.Len() > 0 {
		err = flush()
	}
	if err != nil {
		return err
	}
	end.SHA256 = hex.EncodeToString(sum.Sum(nil))
	last, err := end.Line(a.Store.SignExport)
	if err != nil {
		return err
	}
	return send(last)
}
