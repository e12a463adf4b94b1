package people

import (
	"slices"

	"nize/store"
	"nize/store/commit"
	"nize/store/record"
	"nize/store/record/access"
	"nize/store/record/calls"
	"nize/store/record/catalog"
)

// Rules that name an absorbed user name the surviving one after a join. Otherwise an old id
// in them would let no one approve, or would count one person as two.

// reassign makes every policy and setting of the system name into instead of from; both are
// user:ID. [reshare] changes shares and channels.
func reassign(t *commit.Tx, by store.Caller, from, into string) error {
	servers, err := commit.ListJSON[store.Server](t, "servers", nil)
	if err != nil {
		return err
	}
	for _, s := range servers {
		var named bool
		if s.Approvers, named = access.Reassigned(s.Approvers, from, into); !named {
			continue
		}
		if err := catalog.SaveServer(t, by, &s); err != nil {
			return err
		}
	}
	const approvers, admitted = "approvals.approvers", "bots.access"
	if p, named := access.Reassigned(store.Policy(t.Get("settings", commit.Key("", approvers))), from, into); named {
		if err := record.PutSetting(t.KV(), by, "", approvers, string(p)); err != nil {
			return err
		}
	}
	who, err := store.ParseAccess(string(t.Get("settings", commit.Key("", admitted))))
	if err != nil || !slices.Contains(who, from) { // unset or invalid: it names no one
		return nil
	}
	return record.PutSetting(t.KV(), by, "", admitted, store.Access(access.Replaced(who, from, into)).String())
}

// reassignCalls does the same for waiting calls: their approvers, and the people who have
// approved, so that a person's second approval doesn't count as another's.
func reassignCalls(t *commit.Tx, from, into string) error {
	for _, tail := range calls.WalkCalls(t, "w", nil, maxWaiting) {
		old, err := calls.LoadCall(t, string(tail[8:]))
		if err != nil {
			return err
		}
		s := old
		policy, changed := access.Reassigned(s.Head.Policy, "user:"+from, "user:"+into)
		s.Head.Policy, s.Head.Decisions = policy, slices.Clone(s.Head.Decisions)
		for i := range s.Head.Decisions {
			d := &s.Head.Decisions[i]
			if d.By == from {
				d.By, changed = into, true
			}
			if slices.Contains(d.Voids, from) {
				d.Voids, changed = access.Replaced(d.Voids, from, into), true
			}
		}
		if !changed {
			continue
		}
		if err := calls.SaveCall(t, &old, s); err != nil {
			return err
		}
	}
	return nil
}
