package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/store"
)

var branchConversation = api.Op[branchRequest, store.Thread]{Method: "POST", Path: api.ShowConversation.Path + "/branch", Summary: "start a conversation with a copy of another one"}

// branchRequest names one of the caller's conversations, and the caller's message before
// which the new conversation branches off; "" is the end.
type branchRequest struct {
	ID     string `path:"id" json:"-"`
	Before string `json:"before,omitempty"`
}

// maxBranched is how many turns a branch copies: more than any model reads.
const maxBranched = 1000

// branch creates a conversation on the page with a copy of another of the caller's
// conversations, up to a message. The old one is not changed. Calls are copied with their
// results only; a call without a result stays in the old conversation, so that it can't be
// decided or run twice.
func (b *Browser) branch(ctx context.Context, by store.Caller, req branchRequest) (none store.Thread, err error) {
	old, err := b.own(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	if old.Address.Shared() || old.Address.Channel != "" { // other people wrote there, or may have
		return none, store.Mark(store.Errorf("this conversation is held on %s; go on with it there", string(old.Address.Surface)), store.ErrConflict)
	}
	if req.Before == "" && old.Open {
		return none, store.Mark(store.Errorf("nize is still answering there; stop it, or wait until it has answered"), store.ErrConflict)
	}
	turns, err := b.Store.Turns(ctx, old.ID)
	if err != nil {
		return none, fmt.Errorf("reading the conversation: %w", err)
	}
	turns = store.InForce(turns)
	if req.Before != "" {
		end := slices.IndexFunc(turns, func(t store.Turn) bool {
			return t.Role == store.FromUser && (req.Before == "said/"+t.Key || req.Before == store.TurnID(t.Thread, t.N))
		})
		if end < 0 {
			return none, store.Errorf("message %q %w", store.Clip(req.Before, 80), store.ErrNotFound)
		}
		turns = turns[:end]
	}
	turns = branched(turns)
	now := b.Now()
	th := old
	th.ID, th.Open, th.Created, th.Updated = store.NewID(now), false, now, now
	th.Address = store.Address{Surface: store.OnWeb, Thread: th.ID}
	th.LastMessage, th.Since = "", old.Since
	if len(turns) == 0 && !th.Named {
		th.Title = "" // the title comes from the first message, which will differ
	}
	if err := b.Store.StartThread(ctx, by, th, store.ThreadQuotaOf(b.Config)); err != nil {
		return none, fmt.Errorf("storing a conversation: %w", err)
	}
	for _, t := range turns {
		if err := b.copyFiles(ctx, by, old.ID, th.ID, t.Files); err != nil {
			return none, err
		}
		t.Thread = th.ID
		if err := b.Store.Append(ctx, by, t, false); err != nil {
			return none, fmt.Errorf("copying what was said: %w", err)
		}
	}
	return b.own(ctx, by, th.ID)
}

// branched returns the turns that a branch copies, renumbered: what people and the model
// wrote, and the results of calls. Summaries and the messages between agents belong to the
// conversation in which they were made.
func branched(turns []store.Turn) (list []store.Turn) {
	if len(turns) > maxBranched {
		turns = turns[len(turns)-maxBranched:]
		for len(turns) > 0 && turns[0].Role != store.FromUser {
			turns = turns[1:]
		}
	}
	returned := map[string]bool{}
	for _, t := range turns {
		if t.Role == store.FromTool && t.In == "" {
			returned[t.CallID] = true
		}
	}
	places := map[int]int{} // old number to new
	asked := map[string]bool{}
	for _, t := range turns {
		if t.In != "" || t.Role == store.FromSummary || t.Role == store.FromAgent {
			continue
		}
		if t.Role == store.FromTool && !asked[t.CallID] {
			continue
		}
		if whole := len(t.Calls); whole > 0 {
			t.Calls = slices.DeleteFunc(slices.Clone(t.Calls), func(c store.ToolCall) bool { return !returned[c.ID] })
			if len(t.Calls) < whole {
				t.Opaque = nil // it refers to calls that were not copied
			}
			for _, c := range t.Calls {
				asked[c.ID] = true
			}
			if len(t.Calls) == 0 {
				t.Final = true
			}
		}
		places[t.N] = len(list)
		t.N, t.Key, t.Replaces = len(list), "", 0
		if place, ok := places[t.Re]; ok {
			t.Re = place
		}
		list = append(list, t)
	}
	return list
}

// copyFiles copies a message's files into another conversation. A file that is no longer
// stored is missing in both.
func (b *Browser) copyFiles(ctx context.Context, by store.Caller, from, to string, files []store.File) error {
	for _, f := range files {
		data, err := b.Store.GetFile(ctx, from, f.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading a file of the conversation: %w", err)
		}
		if err := b.Store.PutFile(ctx, by, to, store.File{ID: f.ID, Data: data}, store.FileQuota(b.Config)); err != nil {
			return fmt.Errorf("copying the file %s: %w", f.Name, err)
		}
	}
	return nil
}
