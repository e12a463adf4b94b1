package database

import (
	"slices"

	"nize/store"
	"nize/store/record"
)

// Rules that name an absorbed user name the surviving one after a join: an old
// id in them would let nobody press, or would count one person as two.

// reassigned is a policy that names into instead of from, and whether it named
// from. Where one person is left of those who had to be several, the admins are
// added: as many different people still have to say yes, and somebody can.
func reassigned(p store.Policy, from, into string) (store.Policy, bool) {
	if !approver(p, from) {
		return p, false
	}
	a := p.Approvers()
	a.Who = replaced(a.Who, from, into)
	if _, err := store.ParsePolicy(string(a.Policy())); err != nil {
		a.Who = append(a.Who, string(store.ByAdmins))
	}
	return a.Policy(), true
}

// reassign makes every policy and setting of the system name into instead of
// from; both are user:ID. What is shared with people, and the channels, are
// [tx.reshare]'s.
func (t *tx) reassign(by store.Caller, from, into string) error {
	servers, err := listJSON[store.Server](t, "servers", nil)
	if err != nil {
		return err
	}
	for _, s := range servers {
		var named bool
		if s.Approvers, named = reassigned(s.Approvers, from, into); !named {
			continue
		}
		if err := t.saveServer(by, &s); err != nil {
			return err
		}
	}
	const approvers, access = "approvals.approvers", "bots.access"
	if p, named := reassigned(store.Policy(t.get("settings", key("", approvers))), from, into); named {
		if err := record.PutSetting(kvTx{t}, by, "", approvers, string(p)); err != nil {
			return err
		}
	}
	who, err := store.ParseAccess(string(t.get("settings", key("", access))))
	if err != nil || !slices.Contains(who, from) { // unset, or not to be read: then it names nobody
		return nil
	}
	return record.PutSetting(kvTx{t}, by, "", access, store.Access(replaced(who, from, into)).String())
}

// reassignCalls does the same for the calls that wait: who may press for them,
// and who said yes, so that a person's second yes is not that of another.
func (t *tx) reassignCalls(from, into string) error {
	for _, tail := range t.walkCalls("w", nil, maxWaiting) {
		old, err := t.loadCall(string(tail[8:]))
		if err != nil {
			return err
		}
		s := old
		policy, changed := reassigned(s.head.Policy, "user:"+from, "user:"+into)
		s.head.Policy, s.head.Decisions = policy, slices.Clone(s.head.Decisions)
		for i := range s.head.Decisions {
			d := &s.head.Decisions[i]
			if d.By == from {
				d.By, changed = into, true
			}
			if slices.Contains(d.Voids, from) {
				d.Voids, changed = replaced(d.Voids, from, into), true
			}
		}
		if !changed {
			continue
		}
		if err := t.saveCall(&old, s); err != nil {
			return err
		}
	}
	return nil
}
