package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/printable"
)

// File is the file system's metadata of a path, without following links.
type File struct {
	Path  string
	There bool
	Mode  fs.FileMode
	UID   int    // owner's
	Owner string // user name of UID
	Error string // why it could not be read
}

// Files are the files of a data directory.
type Files struct {
	Dir, Database, Key, Socket File
	Wide                       []string // other files in it that other users may read

	Server    string // the database server, if the database is not a file
	Version   string // the server's
	RoundTrip time.Duration
	Silent    bool // the server does not respond, so the database's content is unknown
}

// farAway is a round-trip time to the database server that people notice.
const farAway = 20 * time.Millisecond

// The names in a data directory.
const (
	databaseName = "nize.db"
	keyName      = "nize.key"
)

// Look collects the facts about a data directory and a socket that are available without a
// daemon. It changes nothing.
func Look(dir, socket string) Facts {
	f := Facts{UID: os.Getuid(), Login: api.LoginName(os.Getuid()), Files: FilesOf(dir, socket), DiskLow: diskLow}
	if space, err := SpaceOf(dir); err == nil {
		f.Disk = space
	}
	return f
}

// FilesOf returns the facts about a data directory's files and the control socket.
func FilesOf(dir, socket string) Files {
	f := Files{Dir: fileAt(dir), Database: fileAt(filepath.Join(dir, databaseName)), Key: fileAt(filepath.Join(dir, keyName)), Socket: fileAt(socket)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f // the directory's own error is reported
	}
	for _, e := range entries {
		switch path := filepath.Join(dir, e.Name()); path {
		case f.Database.Path, f.Key.Path, f.Socket.Path:
		default:
			if at := fileAt(path); at.There && !e.Type().IsDir() && e.Type()&fs.ModeSymlink == 0 && at.Mode.Perm()&0o077 != 0 && len(f.Wide) < maxShown {
				f.Wide = append(f.Wide, e.Name())
			}
		}
	}
	return f
}

// maxShown bounds a list in a finding.
const maxShown = 20

func fileAt(path string) File {
	f := File{Path: path}
	info, err := os.Lstat(path)
	switch {
	case err == nil:
		f.There, f.Mode = true, info.Mode()
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			f.UID = int(st.Uid)
			f.Owner = api.LoginName(f.UID)
		}
	case !errors.Is(err, fs.ErrNotExist):
		f.Error = bare(err)
	}
	return f
}

func bare(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Space is the space on a file system in bytes; zero if unknown.
type Space struct{ Free, Total uint64 }

// SpaceOf returns the space of the file system that holds a path.
func SpaceOf(path string) (Space, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return Space{}, fmt.Errorf("looking at the file system of %s: %w", path, err)
	}
	size := uint64(st.Bsize)
	return Space{Free: st.Bavail * size, Total: st.Blocks * size}, nil
}

// Part returns the fraction that is free, 0 to 1. A file system of size 0, as some network
// ones report, counts as free.
func (s Space) Part() float64 {
	if s.Total == 0 {
		return 1
	}
	return float64(s.Free) / float64(s.Total)
}

func (s Space) String() string { return fmt.Sprintf("%s of %s", sizeText(s.Free), sizeText(s.Total)) }

// sizeText formats a size for people.
func sizeText(n uint64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

func octal(mode fs.FileMode) string { return fmt.Sprintf("%04o", mode.Perm()) }

func daemonRuns(f Facts) []api.Finding {
	if f.Daemon {
		return ok(store.Textf("nized %s answers at %s", f.Version, f.Files.Socket.Path))
	}
	return problem(store.Textf("nized is not running, or does not listen at %s", f.Files.Socket.Path), "nized & # or: systemctl start nized")
}

func dataDir(f Facts) []api.Finding {
	d := f.Files.Dir
	switch {
	case d.Error != "":
		return problem(store.Textf("data directory %s can't be read: %s", d.Path, d.Error), "sudo nizectl doctor")
	case !d.There && f.Daemon:
		return problem(store.Textf("data directory %s was removed while nized is running", d.Path), "nizectl backup nize-copy.db")
	case !d.There:
		return ok(store.Textf("data directory %s does not exist yet: nized creates it", d.Path))
	case !d.Mode.IsDir():
		return problem(store.Textf("%s is not a directory", d.Path), "nized --data-dir DIR")
	}
	if d.Mode.Perm()&0o077 != 0 {
		return problem(store.Textf("data directory %s is open to others (%s)", d.Path, octal(d.Mode)), "chmod 700 "+printable.ShellWord(d.Path))
	}
	if f.Daemon && d.UID != f.UID && f.UID != 0 { // nizectl may run as another user
		return problem(store.Textf("data directory %s belongs to %s", d.Path, d.Owner), fmt.Sprintf("sudo chown -R %d %s", f.UID, printable.ShellWord(d.Path)))
	}
	if len(f.Files.Wide) > 0 {
		return warning(store.Textf("others can read these files if they can enter %s: %s", d.Path, strings.Join(f.Files.Wide, ", ")), "chmod go= "+printable.ShellWord(d.Path)+"/*")
	}
	return ok(store.Textf("data directory %s is accessible to its owner only", d.Path))
}

func database(f Facts) []api.Finding {
	d := f.Files.Database
	for _, i := range f.Incidents {
		if i.Kind == "migration" {
			return problem(store.Textf("%s; the older nized still works with it", i.Title), i.Cure)
		}
	}
	switch server := f.Files.Server; {
	case f.Damaged:
		return problem(store.Textf("calls that must be recorded don't run: %s", f.Broken), "nizectl restore FILE # the newest backup")
	case f.Broken != "":
		return problem(store.Textf("nothing can be stored until nized is restarted, and calls that must be recorded don't run: %s", f.Broken), "journalctl -k -e # for errors of the disk; then: systemctl restart nized")
	case server != "" && f.Files.Silent:
		return problem(store.Textf("the database on %s does not respond: calls that must be recorded don't run", server), "systemctl status postgresql # where it runs")
	case server != "" && f.Files.RoundTrip > farAway:
		return warning(store.Textf("the database on %s is slow to reach: a round trip takes %s, and each commit takes several", server, f.Files.RoundTrip.Round(time.Millisecond)), "move nized near it")
	case server != "":
		return ok(store.Textf("the database is on %s (%s) and responds in %s", server, f.Files.Version, f.Files.RoundTrip.Round(10*time.Microsecond)))
	case d.Error != "" || !f.Files.Dir.There:
		return nil // reported by the directory's check
	case !d.There && f.Daemon:
		return problem(store.Textf("the database %s was removed while nized is running; nothing is lost until nized stops", d.Path), "nizectl backup nize-copy.db")
	case !d.There:
		return ok(store.Textf("there is no database yet: nized creates it"))
	case !d.Mode.IsRegular():
		return problem(store.Textf("%s is not a file", d.Path), "ls -l "+printable.ShellWord(d.Path))
	case d.Mode.Perm()&0o077 != 0:
		return problem(store.Textf("the database is open to others (%s)", octal(d.Mode)), "chmod 600 "+printable.ShellWord(d.Path))
	case f.Daemon && !f.WasClean && f.Unchecked:
		return warning(store.Textf("the last nized was killed and did not close its database; the rest of it is still being checked"), "journalctl -u nized -b -1 -e # to see why")
	case f.Daemon && !f.WasClean:
		return warning(store.Textf("the last nized was killed and did not close its database; it was fully checked since, and is intact"), "journalctl -u nized -b -1 -e # to see why")
	case f.Daemon:
		return ok(store.Textf("the database is open; the last nized closed it"))
	}
	return ok(store.Textf("the database is accessible to its owner only"))
}

func key(f Facts) []api.Finding {
	k := f.Files.Key
	switch {
	case f.KeyFromEnv:
		return ok(store.Textf("secrets are sealed under NIZE_MASTER_KEY (key %s)", f.KeyID))
	case k.Error != "" || !f.Files.Dir.There:
		return nil
	case !k.There && f.Daemon:
		return problem(store.Textf("the key file %s is missing: after nized stops, secrets can't be decrypted", k.Path), "nizectl keys export --to nize-key.txt")
	case !k.There && f.Files.Database.There:
		return problem(store.Textf("the key file %s is missing; without it, or NIZE_MASTER_KEY, secrets can't be decrypted", k.Path), "cp nize-key.txt "+printable.ShellWord(k.Path))
	case !k.There:
		return ok(store.Textf("there is no key yet: nized creates it"))
	case !k.Mode.IsRegular():
		return problem(store.Textf("%s is not a file", k.Path), "ls -l "+printable.ShellWord(k.Path))
	case k.Mode.Perm()&0o077 != 0:
		return problem(store.Textf("the key file %s is open to others (%s)", k.Path, octal(k.Mode)), "chmod 600 "+printable.ShellWord(k.Path)+" # then: nizectl keys rotate")
	case f.Daemon:
		return ok(store.Textf("secrets are sealed under %s (key %s)", k.Path, f.KeyID))
	}
	return ok(store.Textf("the key file is accessible to its owner only"))
}

const (
	diskLow  = 0.10     // default if no daemon provides its setting
	diskFull = 64 << 20 // bytes
)

func disk(f Facts) []api.Finding {
	percent := fmt.Sprintf("%.0f", 100*f.Disk.Part())
	cure := "df -h " + printable.ShellWord(f.Files.Dir.Path)
	switch {
	case f.Disk.Total == 0:
		return nil
	case f.Disk.Free == 0:
		return problem(store.Textf("the disk is full: calls that must be recorded are refused, and results of running calls are recorded when there is space"), cure)
	case f.Disk.Free < diskFull:
		return problem(store.Textf("only %s of disk space are left: tool calls are refused when the disk is full", sizeText(f.Disk.Free)), cure)
	case f.Disk.Part() < f.DiskLow:
		return warning(store.Textf("%s %% of the disk are free, %s of %s", percent, sizeText(f.Disk.Free), sizeText(f.Disk.Total)), cure)
	case f.Surplus.Needs > f.Disk.Free:
		return warning(store.Textf("%s of %s in the database are free, but giving them back needs %s of disk space", sizeText(f.Surplus.Free), sizeText(f.Surplus.Size), sizeText(f.Surplus.Needs)), cure+" # then: nizectl database compact")
	}
	return ok(store.Textf("%s %% of the disk are free, %s of %s", percent, sizeText(f.Disk.Free), sizeText(f.Disk.Total)))
}

func socket(f Facts) []api.Finding {
	s := f.Files.Socket
	switch {
	case s.Error != "":
		return problem(store.Textf("the control socket %s can't be read: %s", s.Path, s.Error), "sudo nizectl doctor")
	case !s.There && f.Daemon:
		return problem(store.Textf("the control socket %s was removed while nized is running", s.Path), "systemctl restart nized # or start it anew")
	case !s.There:
		return nil // reported by daemonRuns
	case s.Mode&fs.ModeSocket == 0:
		return problem(store.Textf("%s is not a socket", s.Path), "nized --socket PATH")
	case !f.Daemon:
		return warning(store.Textf("the control socket %s is left over from a nized that has ended", s.Path), "nized & # it removes it")
	}
	want := fs.FileMode(0o600)
	if f.Process.SocketGroup != "" {
		want = 0o660
	}
	if extra := s.Mode.Perm() &^ want; extra != 0 {
		return problem(store.Textf("the control socket is open to more users than it should be (%s)", octal(s.Mode)), fmt.Sprintf("chmod %o %s", want, printable.ShellWord(s.Path)))
	}
	if f.Process.SocketGroup != "" {
		return ok(store.Textf("the control socket is accessible to its owner and the group %s", f.Process.SocketGroup))
	}
	return ok(store.Textf("the control socket is accessible to its owner only"))
}
