package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/daemon/peer"
	"nize/store"
)

// maxSocketPath is the maximum length of a Unix socket's path on Linux, without its NUL.
const maxSocketPath = 107

// turnTime is how long a start waits for another one that is opening its socket in the same
// directory. It is bounded because in a directory that others can read, any user could hold
// the lock.
const turnTime = 5 * time.Second

func flockWithin(f *os.File, d time.Duration) error {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

// taken is the error for a port or a socket that is in use; nized exits with ExitInUse.
type taken string

func (t taken) Error() string { return string(t) }

// Is makes it match ErrConflict.
func (taken) Is(target error) bool { return target == store.ErrConflict }

// listenSocket opens the control socket, with mode 0600 from its creation, and then opens
// it to members, if any. An existing socket belongs to another daemon if it accepts a
// connection; otherwise it is stale. A lock makes two concurrent starts take turns in this
// check.
func listenSocket(path string, members *group) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket path %s has %d bytes, at most %d work: choose a shorter one with --socket", path, len(path), maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the socket's directory: %w", err)
	}
	turn, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("opening the socket's directory: %w", err)
	}
	defer turn.Close() // releases the lock
	if err := flockWithin(turn, turnTime); err != nil {
		return nil, fmt.Errorf("locking the socket's directory %s: %w; choose a directory of nize's own with --socket", filepath.Dir(path), err)
	}
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s exists and is not a socket: remove it, or choose another path with --socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) {
			if err == nil {
				_ = c.Close() // nothing was sent
			}
			return nil, taken(fmt.Sprintf("the control socket %s is already in use, most likely by another nized: stop it, or choose another path with --socket", path))
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the old socket: %w", err)
		}
	}
	ln, err := ownSocket.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close() // nothing was accepted from it
		return nil, fmt.Errorf("closing the control socket to others: %w", err)
	}
	if members != nil {
		if err := members.admit(path); err != nil {
			_ = ln.Close() // nothing was accepted from it
			return nil, err
		}
	}
	return ln, nil
}

// ownSocket creates sockets with mode 0600: on Linux the file gets the mode of the socket
// that is bound. The umask would work everywhere, but it belongs to the whole process and
// would affect files that other goroutines create at that moment. On systems that don't
// support this, [peers] checks any connection made before the mode is set.
var ownSocket = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) }) // on failure, listenSocket sets it by name
}}

type peerKey struct{}

// atSocket is the kernel's identification of a control connection's peer; err is the reason
// if it is unknown.
type atSocket struct {
	uid    uint32
	groups []uint32
	err    error
}

// withPeer is an http.Server's ConnContext. It is the only place where the caller's
// identity travels in a context: from the connection to the handler, which converts it to a
// store.Caller.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	uid, groups, err := peer.IDs(c)
	return context.WithValue(ctx, peerKey{}, atSocket{uid, groups, err})
}

// peers converts socket peers to callers; each uid is looked up once.
type peers struct {
	users   store.Users
	own     uint32
	members *group // also admitted; nil for none

	mu    sync.Mutex
	known map[uint32]string // uid → user id
}

func newPeers(users store.Users) *peers {
	return &peers{users: users, own: uint32(os.Getuid()), known: map[uint32]string{}}
}

// caller returns the sender of a request on the control socket. Root and the daemon's own
// user are admins, those in socket.group are members unless an admin gave them another
// role, and everyone else is rejected.
func (p *peers) caller(r *http.Request) (store.Caller, error) {
	at, ok := r.Context().Value(peerKey{}).(atSocket)
	if !ok || at.err != nil {
		return store.Caller{}, fmt.Errorf("reading who is at the socket: %w", errors.Join(store.ErrRefused, at.err))
	}
	role := store.Admin
	if at.uid != 0 && at.uid != p.own {
		if p.members == nil || !slices.Contains(at.groups, p.members.gid) {
			return store.Caller{}, store.Mark(fmt.Errorf("user %d may not use the control socket", at.uid), store.ErrRefused)
		}
		role = store.Member
	}
	u, err := p.user(r.Context(), at.uid, role)
	if errors.Is(err, store.ErrNoDatabase) && role == store.Admin && asksWhatIsWrong(r) {
		u, err = store.User{Name: api.LoginName(int(at.uid)), Role: role, State: store.Active}, nil // a diagnosis must work without the database
	}
	if err != nil {
		return store.Caller{}, err
	}
	if u.State != store.Active {
		return store.Caller{}, store.Mark(fmt.Errorf("user %s is disabled", u.Name), store.ErrRefused)
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnCLI, Identity: "local:" + strconv.Itoa(int(at.uid))}, nil
}

func (p *peers) user(ctx context.Context, uid uint32, role store.Role) (store.User, error) {
	identity := "local:" + strconv.Itoa(int(uid))
	p.mu.Lock()
	id := p.known[uid]
	p.mu.Unlock()
	if id != "" {
		u, err := p.users.GetUser(ctx, id)
		if err == nil && slices.Contains(u.Identities, identity) { // the identity is still linked
			return u, nil
		}
	}
	u, err := p.users.EnsureUser(ctx, identity, api.LoginName(int(uid)), role)
	if err != nil {
		return store.User{}, fmt.Errorf("finding user %d: %w", uid, err)
	}
	p.mu.Lock()
	p.known[uid] = u.ID
	p.mu.Unlock()
	return u, nil
}
