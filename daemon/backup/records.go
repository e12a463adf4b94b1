package backup

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/database"
)

// Records is the operations on the records of the database.
type Records struct{ DB *database.DB }

// Mount registers the operations.
func (d *Records) Mount(m *mux.Mux) {
	mux.HandleStream(m, api.CompactDatabase, d.Compact)
	mux.Handle(m, api.ListBuckets, d.Layout)
	mux.Handle(m, api.ShowRecord, d.Show)
}

// Compact rewrites older records and gives freed space back.
func (d *Records) Compact(ctx context.Context, by store.Caller, req api.CompactRequest, send func(api.CompactLine) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c, err := d.DB.Compact(ctx, by, req.Records, func(r database.Rewritten) {
		if err := send(api.CompactLine{Rewritten: r.Records}); err != nil {
			stop(err)
		}
	})
	if err != nil {
		return err
	}
	return send(api.CompactLine{Rewritten: c.Records, Result: &api.Compacted{
		Records: c.Records, Damaged: c.Damaged, Raised: c.Raised, Before: c.FileBefore, After: c.FileAfter, Server: c.Server,
	}})
}

// Layout lists the buckets, as the packages that use them declare them.
func (d *Records) Layout(context.Context, store.Caller, api.Empty) (api.List[api.Bucket], error) {
	var list []api.Bucket
	for _, b := range d.DB.Layout() {
		list = append(list, api.Bucket(b))
	}
	return api.Items(list), nil
}

// shownBuckets are the buckets whose records are shown. The others may hold what people
// wrote, which an admin reads for a reason only, by other operations.
var shownBuckets = []string{"calls", "events", "feed"}

// Show returns a record in readable form, without what people asked, got or wrote.
func (d *Records) Show(ctx context.Context, by store.Caller, req api.ShowRecordRequest) (none api.Record, err error) {
	key, seq := []byte(req.Key), uint64(0)
	switch req.Bucket {
	case "calls":
	case "events", "feed":
		if seq, err = strconv.ParseUint(req.Key, 10, 64); err != nil {
			return none, store.Errorf("%w key %q: records of %s have numbers", store.ErrInvalid, req.Key, req.Bucket)
		}
		if key, err = hex.DecodeString(fmt.Sprintf("%016x", seq)); err != nil {
			return none, err
		}
	default:
		return none, store.Errorf("%w bucket %q: those that can be shown are %s", store.ErrInvalid, req.Bucket, strings.Join(shownBuckets, ", "))
	}
	s, err := d.DB.ShowStored(ctx, req.Bucket, key)
	if err != nil {
		return none, store.Errorf("record %s of bucket %s: %w", req.Key, req.Bucket, err)
	}
	r := api.Record{Bucket: req.Bucket, Key: req.Key, Form: s.Form, Size: s.Size}
	switch {
	case s.Call != nil:
		r.Fields, err = fieldsOf(factsOf(*s.Call))
		for _, part := range []struct {
			name string
			size int
		}{{"args", s.Args}, {"result", s.Result}} {
			if part.size > 0 {
				r.Fields = append(r.Fields, api.RecordField{Name: part.name, Text: fmt.Sprintf("%d bytes", part.size), Sealed: true})
			}
		}
	case req.Bucket == "feed":
		for _, c := range s.Changes {
			text := strings.Join(strings.Fields(strings.Join([]string{c.Kind, c.ID, c.Thread, string(c.State)}, " ")), " ")
			r.Fields = append(r.Fields, api.RecordField{Name: fmt.Sprint(c.Seq), Text: text})
		}
	default:
		var list []store.Event
		if list, err = d.DB.Events(ctx, store.EventQuery{After: cmp.Or(seq, 1) - 1, Before: seq + 1, Limit: 1}); err != nil || len(list) == 0 {
			return none, cmp.Or(err, store.ErrNotFound)
		}
		if e := list[0]; e.User == by.User {
			r.Fields, err = fieldsOf(e)
		} else {
			e.Data = nil // the audit trail shows it, by its own rules
			r.Fields, err = fieldsOf(e)
		}
	}
	return r, err
}

// factsOf returns a call without what people and models wrote.
func factsOf(c store.Call) store.Call {
	c.Why, c.Reason, c.Warnings, c.Ask, c.RunsAs = "", store.Text{}, nil, nil, store.Text{}
	c.Args, c.Result = nil, nil
	for i := range c.Decisions {
		d := &c.Decisions[i]
		d.Reason, d.Args, d.Pattern = store.Text{}, nil, nil
	}
	return c
}

// fieldsOf returns the members of a value's JSON that are not empty, in their order.
func fieldsOf(v any) (fields []api.RecordField, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		text := string(raw)
		var words string
		if json.Unmarshal(raw, &words) == nil {
			text = words
		}
		if text != "" && text != "null" {
			fields = append(fields, api.RecordField{Name: name.(string), Text: text})
		}
	}
	return fields, nil
}
