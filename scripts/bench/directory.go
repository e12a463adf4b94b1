package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	directoryPeople = 5_000
	directoryGroups = 500
	directoryIn     = 50 // people of a group
	directoryAtOnce = 8  // requests, as a directory sends them
)

// directory measures a company's directory that provisions its people and groups by SCIM,
// and then asks again about each, as directories do every 40 minutes.
func (b *bench) directory(ctx context.Context) (err error) {
	d, err := b.startNized(ctx, "directory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	made, err := api.CreateToken.Call(ctx, d.api, api.CreateTokenRequest{Name: "directory", Audience: store.ForSCIM})
	if err != nil {
		return err
	}
	before, _ := d.resident()
	ask := func(ctx context.Context, method, path string, body any) (id string, err error) {
		raw, err := json.Marshal(body)
		if err != nil {
			return "", err
		}
		req, err := http.NewRequestWithContext(ctx, method, "http://"+d.addr+"/scim/v2"+path, bytes.NewReader(raw))
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+made.Secret.Reveal())
		resp, err := d.http.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if raw, err = io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 300 {
			return "", fmt.Errorf("%s %s: %s %s %w", method, path, resp.Status, raw, err)
		}
		var v struct{ ID string }
		return v.ID, json.Unmarshal(raw, &v)
	}
	each := func(what string, n int, do func(ctx context.Context, i int) error) error {
		cpu, begin := d.cpu(), time.Now()
		if err := inParallel(ctx, directoryAtOnce, n, do); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		took, used := time.Since(begin), d.cpu()-cpu
		b.table.add(row{what: fmt.Sprintf("SCIM: %s, each", what), value: millis(took) / float64(n), unit: "ms",
			reference: fmt.Sprintf("%s s in all, %s ms of CPU each", number(took.Seconds()), number(millis(used)/float64(n)))})
		return nil
	}
	people, groups := make([]string, directoryPeople), make([]string, directoryGroups)
	if err := each("5,000 people are created", directoryPeople, func(ctx context.Context, i int) (err error) {
		people[i], err = ask(ctx, http.MethodPost, "/Users", map[string]any{
			"userName": fmt.Sprintf("p%d@acme.example", i), "externalId": fmt.Sprintf("e%d", i), "active": true, "displayName": fmt.Sprintf("Person %d", i),
			"emails": []any{map[string]any{"value": fmt.Sprintf("p%d@acme.example", i), "primary": true}},
		})
		return err
	}); err != nil {
		return err
	}
	if err := each("500 groups of 50 are created", directoryGroups, func(ctx context.Context, i int) (err error) {
		var members []any
		for n := range directoryIn {
			members = append(members, map[string]any{"value": people[(i*directoryIn/5+n)%len(people)]})
		}
		groups[i], err = ask(ctx, http.MethodPost, "/Groups", map[string]any{"displayName": fmt.Sprintf("Group %d", i), "members": members})
		return err
	}); err != nil {
		return err
	}
	if err := each("5,000 people are asked for by name", directoryPeople, func(ctx context.Context, i int) error {
		_, err := ask(ctx, http.MethodGet, "/Users?"+url.Values{"filter": {fmt.Sprintf("userName eq \"p%d@acme.example\"", i)}}.Encode(), nil)
		return err
	}); err != nil {
		return err
	}
	if err := each("500 people change their group", directoryGroups, func(ctx context.Context, i int) error {
		_, err := ask(ctx, http.MethodPatch, "/Groups/"+groups[i], map[string]any{"Operations": []any{
			map[string]any{"op": "add", "path": "members", "value": []any{map[string]any{"value": people[len(people)-1-i]}}},
		}})
		return err
	}); err != nil {
		return err
	}
	if err := each("500 people leave", directoryGroups, func(ctx context.Context, i int) error {
		_, err := ask(ctx, http.MethodPatch, "/Users/"+people[i], map[string]any{"Operations": []any{map[string]any{"op": "replace", "value": map[string]any{"active": false}}}})
		return err
	}); err != nil {
		return err
	}
	after, _ := d.resident()
	b.table.add(row{what: "resident memory after 5,000 people and 500 groups came by SCIM", value: after, unit: "MB", reference: number(before) + " MB before", missing: noProc(after)})
	return nil
}

// inParallel calls do for 0 to n-1, at once at a time. After an error it starts no more.
func inParallel(ctx context.Context, atOnce, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
