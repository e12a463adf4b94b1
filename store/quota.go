package store

import "slices"

// Quota limits how much may be stored: Each for one person, All for everyone together.
// Limit and LimitAll are the names of the settings, which refusals mention.
type Quota struct {
	Each, All       int64
	Limit, LimitAll string
	// Least is the minimum size that each thing counts for, which limits their number.
	Least int64
}

// leastFile is the minimum size that a file counts for. Even a small file costs space and
// time, and a person may store hundreds a minute.
const leastFile = 16 << 10

// FileQuota returns the quota of files attached to messages.
func FileQuota(c Config) Quota {
	q := QuotaOf(c, "limits.user.files", "limits.images.stored")
	q.Least = leastFile
	return q
}

// ThreadQuota limits how many conversations a person may have begun, and the size of their
// turns in bytes. Only Each of the two is used: retention bounds the total.
type ThreadQuota struct{ Count, Size Quota }

// ThreadQuotaOf returns the quota of conversations.
func ThreadQuotaOf(c Config) ThreadQuota {
	return ThreadQuota{
		Count: Quota{Each: int64(GetInt(c, "", "limits.user.conversations")), Limit: "limits.user.conversations"},
		Size:  Quota{Each: int64(GetInt(c, "", "limits.user.conversations.stored")), Limit: "limits.user.conversations.stored"},
	}
}

// QuotaOf reads a quota from two settings.
func QuotaOf(c Config, each, all string) Quota {
	return Quota{Each: int64(GetInt(c, "", each)), All: int64(GetInt(c, "", all)), Limit: each, LimitAll: all}
}

// Kept is one thing that counts for a quota. A spare one is unfinished, such as a file that
// was never sent.
type Kept struct {
	Owner string
	Size  int64
	Spare bool
}

// Size returns the size that a thing counts for.
func (q Quota) Size(size int64) int64 { return max(size, min(q.Least, q.Each, q.All)) }

// MakeRoom returns the indices of the things to delete so that owner may store one more
// thing of that size. The list is ordered by age, oldest first.
//
// If owner exceeds their own quota, only owner's things are deleted. If the total is
// exceeded, things of the user who stores the most are deleted, provided that they store
// more than owner would: deletions never favor a user who stores more. Spare things are
// deleted first. MakeRoom returns ErrRefused if that isn't enough.
func (q Quota) MakeRoom(list []Kept, owner string, size int64) (drop []int, err error) {
	if size > q.Each {
		return nil, Mark(Errorf("its size is %s; one person may keep %s (the setting %s)", Size(size).String(), Size(q.Each).String(), q.Limit), ErrRefused)
	}
	if size > q.All {
		return nil, Mark(Errorf("its size is %s; everybody together may keep %s (the setting %s)", Size(size).String(), Size(q.All).String(), q.LimitAll), ErrRefused)
	}
	size = q.Size(size)
	r := room{list: slices.Clone(list), gone: make([]bool, len(list)), total: size}
	list = r.list
	mine := &share{use: size}
	of := map[string]*share{owner: mine}
	for i := range list {
		list[i].Size = q.Size(list[i].Size)
		k := list[i]
		s := of[k.Owner]
		if s == nil {
			s = &share{}
			of[k.Owner] = s
		}
		if len(s.all) == 0 {
			r.shares = append(r.shares, s)
		}
		s.use += k.Size
		r.total += k.Size
		s.all = append(s.all, i)
		if k.Spare {
			s.spare = append(s.spare, i)
		}
	}
	for mine.use > q.Each && (r.dropOldest(mine, true) || r.dropOldest(mine, false)) {
	}
	for r.total > q.All {
		if !r.dropOldest(r.largest(mine, true), true) && !r.dropOldest(r.largest(mine, false), false) {
			return nil, Mark(Errorf("no space is left: everybody together may keep %s (the setting %s)", Size(q.All).String(), q.LimitAll), ErrRefused)
		}
	}
	return r.drop, nil
}

// room is the state of one MakeRoom.
type room struct {
	list   []Kept
	gone   []bool
	shares []*share // ordered by the age of the owner's oldest thing
	total  int64
	drop   []int
}

// share is the things of one person; its lists are those not yet dropped, oldest first.
type share struct {
	use        int64
	all, spare []int
}

// dropOldest drops the oldest thing, or spare thing, of a share, and reports whether there
// was one.
func (r *room) dropOldest(s *share, spare bool) bool {
	if s == nil {
		return false
	}
	queue := &s.all
	if spare {
		queue = &s.spare
	}
	for len(*queue) > 0 {
		i := (*queue)[0]
		*queue = (*queue)[1:]
		if r.gone[i] {
			continue
		}
		r.gone[i], r.drop = true, append(r.drop, i)
		s.use -= r.list[i].Size
		r.total -= r.list[i].Size
		return true
	}
	return false
}

// largest returns the largest share that has something to drop and is larger than mine, or
// mine. If several are equal, it returns the one with the oldest thing; nil if there is
// none.
func (r *room) largest(mine *share, spare bool) (most *share) {
	for _, s := range r.shares {
		has := len(s.all) > 0
		if spare {
			has = len(s.spare) > 0
		}
		if has && (s == mine || s.use > mine.use) && (most == nil || s.use > most.use) {
			most = s
		}
	}
	return most
}
