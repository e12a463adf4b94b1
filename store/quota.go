package store

import "slices"

// Quota is how much may be kept: Each for one person, All for everybody together.
// Limit and LimitAll are the settings that say so; a refusal names them.
type Quota struct {
	Each, All       int64
	Limit, LimitAll string
	// Least is what each thing counts for at the least: it bounds how many there are.
	Least int64
}

// leastFile is what a file counts for at the least. Each costs room and time however
// small it is, and a person may put hundreds a minute.
const leastFile = 16 << 10

// FileQuota is the quota of files that come with messages.
func FileQuota(c Config) Quota {
	q := QuotaOf(c, "limits.user.files", "limits.images.stored")
	q.Least = leastFile
	return q
}

// ThreadQuota is how many conversations a person may have begun, and how many bytes
// their turns may have. Only Each of the two counts: they end with retention.
type ThreadQuota struct{ Count, Size Quota }

// ThreadQuotaOf is the quota of conversations.
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

// Kept is one thing that counts for a quota. A spare one is unfinished, such as a
// file that was never sent.
type Kept struct {
	Owner string
	Size  int64
	Spare bool
}

// Size returns what a thing of that size counts for.
func (q Quota) Size(size int64) int64 { return max(size, min(q.Least, q.Each, q.All)) }

// MakeRoom returns the indices of what has to go so that owner may keep one more
// thing of that size. The list is in order of age, the oldest first.
//
// A person above their own quota loses their own things only. If everything together
// is too much, whoever keeps the most loses, as long as that is more than owner would
// keep: nobody makes room for somebody who keeps more than they do. Spare things go
// before others. MakeRoom returns ErrRefused if that isn't enough.
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
	shares []*share // of who keeps the oldest thing first
	total  int64
	drop   []int
}

// share is what one person keeps; its lists are of what may be left, the oldest first.
type share struct {
	use        int64
	all, spare []int
}

// dropOldest drops the oldest thing, or spare thing, of a share, and reports whether
// there was one.
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

// largest returns the largest share that has something to lose and is larger than
// mine, or mine; of equal ones the one with the oldest thing, nil if there is none.
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
