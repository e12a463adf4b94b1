package threads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"nize/store"
	"nize/store/commit"
	"nize/store/record"
)

// ShareTurns implements [store.Privacy].
func (d Threads) ShareTurns(ctx context.Context, by store.Caller, thread string, n int) (turn store.Turn, err error) {
	err = d.db.Write(ctx, fmt.Sprintf("sharing turn %d of conversation %s", n, thread), func(t *commit.Tx) error {
		turn = store.Turn{}
		turns, raw, err := turnsOf(t, thread)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(turns, func(o store.Turn) bool { return o.N == n })
		if at < 0 || turns[at].Role != store.FromModel {
			return store.Mark(store.Errorf("there is nothing to share"), store.ErrRefused)
		}
		owner := d.db.Alias(by.User)
		switch {
		case turns[at].For == "" && turns[at].SharedBy != "" && d.db.Alias(turns[at].SharedBy) == owner:
			turn = turns[at]
			return store.Errorf("it was shared: %w", store.ErrDecided)
		case turns[at].For == "" || d.db.Alias(turns[at].For) != owner:
			return store.Mark(store.Errorf("there is nothing of yours to share"), store.ErrRefused)
		}
		shared := 0
		for i := at; i >= 0 && (i == at || !answers(turns[i])); i-- {
			if turns[i].For == "" || d.db.Alias(turns[i].For) != owner {
				continue
			}
			turns[i].For, turns[i].SharedBy = "", by.User
			head, err := json.Marshal(record.OfTurn(turns[i]))
			if err != nil {
				return err
			}
			if err := t.Put("turns", turnKey(thread, turns[i].N), commit.Pack(head, raw[i])); err != nil {
				return err
			}
			shared++
		}
		turn = turns[at]
		t.Change(store.Change{Kind: "turn", ID: thread + "/" + strconv.Itoa(n), Thread: thread})
		return t.Event(commit.Note{By: by, Kind: "thread.share", Subject: thread, Data: struct {
			Turn   int `json:"turn"`
			Shared int `json:"shared"` // turns, including the results that the answer is based on
		}{n, shared}})
	})
	return turn, err
}

// answers reports whether a turn ends the answer to the message before it.
func answers(t store.Turn) bool {
	return t.Role == store.FromModel && len(t.Calls) == 0 || t.Final
}

// turnsOf returns the turns of a conversation; raw is the opaque data of each turn's
// provider.
func turnsOf(t *commit.Tx, thread string) (turns []store.Turn, raw [][]byte, err error) {
	if t.Get("threads", []byte(thread)) == nil {
		return nil, nil, store.ErrNotFound
	}
	err = t.Each("turns", commit.Key(thread, ""), func(_, v []byte) error {
		p, err := commit.UnpackN(v, 2)
		if err != nil {
			return err
		}
		r, err := commit.DecodeJSON[record.Turn](p[0])
		turn := r.Value()
		turns, raw = append(turns, turn), append(raw, commit.CloneBytes(p[1]))
		return err
	})
	return turns, raw, err
}
