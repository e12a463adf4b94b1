package extensions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Limits of one folder, all of which is read before each call.
const (
	maxFiles = 2000
	maxBytes = 64 << 20
)

// folder is the content of one extension's folder.
type folder struct {
	print string            // changes if anything in it may have changed
	files map[string]string // hash of each file by path; only set if they were read
}

// hash returns one hash for the whole folder.
func (f folder) hash() string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		fmt.Fprintf(h, "%q %s\n", path, f.files[path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// changes describes the differences in words.
func (f folder) changes(was map[string]string) (words []string) {
	for _, path := range slices.Sorted(maps.Keys(f.files)) {
		switch old, ok := was[path]; {
		case !ok:
			words = append(words, path+" is new")
		case old != f.files[path]:
			words = append(words, path+" changed")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(was)) {
		if _, ok := f.files[path]; !ok {
			words = append(words, path+" is gone")
		}
	}
	return words
}

// read reads a folder that only its owner may write. It returns an error if another user's
// code could get into it, because of its mode, its owner, or a link to another place. If
// whole is true, it reads the files.
func read(dir string, owner int, whole bool) (f folder, err error) {
	f.files = map[string]string{}
	info, err := os.Lstat(dir)
	if err != nil {
		return f, clean(err)
	}
	if !info.IsDir() {
		return f, errors.New("it must be a folder, not a link to one")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return f, clean(err)
	}
	defer root.Close()
	var print strings.Builder
	var size int64
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return clean(err)
		}
		info, err := d.Info()
		if err != nil {
			return clean(err)
		}
		at := path
		if at == "." {
			at = filepath.Base(dir)
		}
		if err := owned(at, info, owner); err != nil {
			return err
		}
		stat, _ := info.Sys().(*syscall.Stat_t) // owned has checked the type
		fmt.Fprintf(&print, "%q %v %d %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano(), stat.Ino)
		switch {
		case info.IsDir():
			return nil
		case info.Mode()&fs.ModeSymlink != 0:
			if _, err := root.Stat(path); err != nil {
				return fmt.Errorf("%s: it is a link that leads out of the folder, or is broken", path)
			}
			target, err := root.Readlink(path)
			f.files[path] = "link " + target
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s: it is not a regular file", path)
		}
		if size += info.Size(); size > maxBytes || len(f.files) == maxFiles {
			return fmt.Errorf("the folder holds more than %d files or %d MiB", maxFiles, maxBytes>>20)
		}
		f.files[path] = ""
		if whole {
			f.files[path], err = sum(root, path, info.Mode())
		}
		return err
	})
	f.print = print.String()
	return f, err
}

// sum returns a hash of one file and of whether it is executable.
func sum(root *os.Root, path string, mode fs.FileMode) (string, error) {
	file, err := root.Open(path)
	if err != nil {
		return "", clean(err)
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(file, maxBytes)); err != nil {
		return "", clean(err)
	}
	return fmt.Sprintf("%t %x", mode&0o100 != 0, h.Sum(nil)), nil
}

// owned returns an error if another user could change the file or folder.
func owned(path string, info fs.FileInfo, owner int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: its owner can't be determined", path)
	case stat.Uid != 0 && int(stat.Uid) != owner:
		return fmt.Errorf("%s: it belongs to another user, who could run code as nized: chown it", path)
	case info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s: others may write it (%04o), and so run code as nized: chmod go-w it", path, info.Mode().Perm())
	}
	return nil
}

// clean removes the path from an error, because its prefix already names the file.
func clean(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}
