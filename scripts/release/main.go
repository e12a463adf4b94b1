// Command release builds everything that is published of nize into a directory.
//
// These are programs for four systems as tarballs, Debian and RPM packages, an image for
// two architectures, a Helm chart, a bill of materials and the licences of what is linked
// in, checksums, and a signature if there is a key. `make release VERSION=x.y.z` runs it.
//
// The same commit gives the same bytes: times are the commit's, entries have no owner of
// this machine, and the programs contain no paths. The image's certificates are those of
// the machine that builds it.
//
// It is a separate module, so that its dependencies are not in the programs' go.mod.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
)

// release is one run.
type release struct {
	version string
	only    string // a package format for this machine's architecture, "" for everything
	commit  string
	date    time.Time // of the commit; every file has it
	tree    string    // the repository
	out     string
	work    string // removed at the end
}

// target is a system that programs are built for.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// toolchain is the Go version that compiles a release on every machine: another one would
// give other bytes. Raise it when Go's next patch version is released; .ci/run fails if it
// has a known vulnerability that the programs reach.
const toolchain = "go1.26.10"

var programs = []string{"nized", "nizectl", "nize-toolbox"}

func main() {
	r := &release{}
	flag.StringVar(&r.version, "version", "", "`x.y.z`, the version to build")
	flag.StringVar(&r.tree, "tree", "../..", "the repository's `DIR`")
	flag.StringVar(&r.out, "out", "../../dist", "`DIR` to write to, which must not exist")
	flag.StringVar(&r.only, "only", "", "build this package `FORMAT` alone (deb or rpm), for this machine's architecture")
	key := flag.String("key", "", "minisign secret key `FILE` to sign SHA256SUMS with; its password is in $MINISIGN_PASSWORD")
	flag.Parse()
	if err := r.run(*key); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

func (r *release) run(key string) (err error) {
	if !semver.MatchString(r.version) {
		return fmt.Errorf("%q is not a version; use -version x.y.z", r.version)
	}
	if _, err := os.Stat(r.out); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists; remove it first", r.out)
	}
	if r.only != "" && r.only != "deb" && r.only != "rpm" {
		return fmt.Errorf("-only %s is not a package format; use deb or rpm", r.only)
	}
	if err := r.readCommit(); err != nil {
		return err
	}
	if err := os.Setenv("GOTOOLCHAIN", toolchain); err != nil { // for every go command
		return err
	}
	if r.work, err = os.MkdirTemp("", "nize-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if err := r.manual(); err != nil {
		return err
	}
	var images []image
	for _, t := range targets {
		if r.only != "" && t != (target{"linux", runtime.GOARCH}) {
			continue
		}
		fmt.Printf("release: %s/%s\n", t.os, t.arch)
		if err := r.build(t); err != nil {
			return err
		}
		licences, err := r.materials(t)
		if err != nil {
			return err
		}
		if r.only != "" {
			if err := r.packages(t, licences, r.only); err != nil {
				return err
			}
			return r.sums(key)
		}
		if err := r.tarball(t, licences); err != nil {
			return err
		}
		if t.os != "linux" {
			continue
		}
		if err := r.packages(t, licences, "deb", "rpm"); err != nil {
			return err
		}
		one, err := r.image(t)
		if err != nil {
			return err
		}
		images = append(images, one)
	}
	if err := r.archiveImages(images); err != nil {
		return err
	}
	if err := r.chart(); err != nil {
		return err
	}
	return r.sums(key)
}

// readCommit refuses a tree with changes: a release is built from a commit.
func (r *release) readCommit() error {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stderr = r.tree, os.Stderr
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	if changed != "" {
		return fmt.Errorf("the repository has changes that are not committed:\n%s", changed)
	}
	if r.commit, err = git("rev-parse", "--short=12", "HEAD"); err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	text, err := git("log", "-1", "--format=%cI")
	if err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	r.date, err = time.Parse(time.RFC3339, text)
	r.date = r.date.UTC()
	return err
}

// exec runs a command in the repository.
func (r *release) exec(env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.tree, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

// manual writes the manual pages.
func (r *release) manual() error { return r.exec(nil, "make", "-s", "man") }

// programsOf returns the directory of a target's programs.
func (r *release) programsOf(t target) string { return filepath.Join(r.work, t.os+"_"+t.arch) }

func (r *release) build(t target) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-tags", "urfave_cli_no_template",
		"-ldflags", fmt.Sprintf("-s -w -buildid= -X nize/daemon/api.Version=%s -X nize/daemon/api.Commit=%s -X nize/daemon/api.Date=%s", r.version, r.commit, r.date.Format(time.DateOnly)),
		"-o", r.programsOf(t) + "/"}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	return r.exec([]string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + t.os, "GOARCH=" + t.arch}, "go", args...)
}

// path returns the path of an artifact.
func (r *release) path(format string, args ...any) string {
	return filepath.Join(r.out, fmt.Sprintf(format, args...))
}

// sums writes SHA256SUMS, and its signature.
func (r *release) sums(key string) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		f, err := os.Open(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		lines = append(lines, hex.EncodeToString(h.Sum(nil))+"  "+e.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	sums := []byte(strings.Join(lines, ""))
	if err := os.WriteFile(r.path("SHA256SUMS"), sums, 0o644); err != nil || key == "" {
		return err
	}
	secret, err := minisign.PrivateKeyFromFile(os.Getenv("MINISIGN_PASSWORD"), key)
	if err != nil {
		return fmt.Errorf("opening the key: %w", err)
	}
	comment := fmt.Sprintf("nize %s, commit %s", r.version, r.commit)
	return os.WriteFile(r.path("SHA256SUMS.minisig"), minisign.SignWithComments(secret, sums, comment, "signature of SHA256SUMS"), 0o644)
}
