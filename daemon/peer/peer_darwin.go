package peer

import "golang.org/x/sys/unix"

// idsOf returns the user who opened the other end, and their groups (LOCAL_PEERCRED, which
// returns only the first 16).
func idsOf(fd uintptr) (uid uint32, groups []uint32, err error) {
	cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, nil, err
	}
	return cred.Uid, cred.Groups[:min(max(int(cred.Ngroups), 0), len(cred.Groups))], nil
}
