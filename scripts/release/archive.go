package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file of an archive or a package. from is a file of this machine, or data is
// its content.
type entry struct {
	to   string
	from string
	data []byte
	mode int64
	uid  int // and gid
	dir  bool
}

func (e entry) content() ([]byte, error) {
	if e.from != "" {
		return os.ReadFile(e.from)
	}
	return e.data, nil
}

// documents returns the files that accompany the programs in every artifact except the
// image.
func (r *release) documents() (list []entry, err error) {
	pages, err := filepath.Glob(filepath.Join(r.tree, "bin/man/*.1"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("there are no manual pages: %w", err)
	}
	for _, p := range pages {
		list = append(list, entry{to: "share/man/man1/" + filepath.Base(p), from: p, mode: 0o644})
	}
	completion := filepath.Join(r.tree, "cmd/nizectl/completion")
	for from, to := range map[string]string{"nizectl.bash": "bash-completion/completions/nizectl", "nizectl.zsh": "zsh/site-functions/_nizectl", "nizectl.fish": "fish/vendor_completions.d/nizectl.fish"} {
		list = append(list, entry{to: "share/" + to, from: filepath.Join(completion, from), mode: 0o644})
	}
	return list, nil
}

// tarball writes the tarball: bin, share, the units, README and licences.
func (r *release) tarball(t target, licences []byte) error {
	list, err := r.documents()
	if err != nil {
		return err
	}
	for _, p := range programs {
		list = append(list, entry{to: "bin/" + p, from: filepath.Join(r.programsOf(t), p), mode: 0o755})
	}
	if t.os == "linux" {
		units, err := filepath.Glob(filepath.Join(r.tree, "scripts/systemd/*"))
		if err != nil {
			return err
		}
		for _, u := range units {
			list = append(list, entry{to: "systemd/" + filepath.Base(u), from: u, mode: 0o644})
		}
	}
	for _, name := range []string{"README.md", "LICENSE"} {
		list = append(list, entry{to: name, from: filepath.Join(r.tree, name), mode: 0o644})
	}
	list = append(list, entry{to: "LICENSES.txt", data: licences, mode: 0o644})
	name := fmt.Sprintf("nize_%s_%s_%s", r.version, t.os, t.arch)
	return r.writeTarGz(r.path("%s.tar.gz", name), name, list)
}

// writeTarGz writes entries below a directory of the archive.
func (r *release) writeTarGz(to, below string, list []entry) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.writeTar(z, below, list); err != nil {
		return err
	}
	return z.Close()
}

// writeTar sorts the entries and gives all of them the time of the commit.
func (r *release) writeTar(w io.Writer, below string, list []entry) error {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.to, b.to) })
	tw := tar.NewWriter(w)
	for _, e := range list {
		b, err := e.content()
		if err != nil {
			return err
		}
		h := &tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: path.Join(below, e.to), Mode: e.mode, Size: int64(len(b)), ModTime: r.date, Uid: e.uid, Gid: e.uid}
		if e.dir {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(b); err != nil {
			return err
		}
	}
	return tw.Close()
}
