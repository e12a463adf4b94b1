package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages writes the Debian and the RPM package: the programs below /usr, the units, the
// user nize, and /etc/nize/nized.toml, which upgrades leave unchanged. The scripts that run
// at installation are in scripts/release/deb; RPM has the same.
func (r *release) packages(t target, licences []byte, formats ...string) error {
	list, err := r.documents()
	if err != nil {
		return err
	}
	var contents files.Contents
	add := func(to string, data []byte, mode os.FileMode, kind string) error {
		from := filepath.Join(r.work, "package", t.arch, to)
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(from, data, 0o644); err != nil {
			return err
		}
		contents = append(contents, &files.Content{Source: from, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.date}})
		return nil
	}
	for _, p := range programs {
		b, err := os.ReadFile(filepath.Join(r.programsOf(t), p))
		if err == nil {
			err = add("/usr/bin/"+p, b, 0o755, files.TypeFile)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range list {
		b, err := e.content()
		if err != nil {
			return err
		}
		to := "/usr/" + strings.Replace(e.to, "share/zsh/site-functions", "share/zsh/vendor-completions", 1)
		if strings.HasSuffix(to, ".1") {
			if b, err = compress(b); err != nil {
				return err
			}
			to += ".gz"
		}
		if err := add(to, b, 0o644, files.TypeFile); err != nil {
			return err
		}
	}
	units, err := filepath.Glob(filepath.Join(r.tree, "scripts/systemd/*"))
	if err != nil {
		return err
	}
	for _, u := range units {
		b, err := os.ReadFile(u)
		if err != nil {
			return err
		}
		to := "/usr/lib/systemd/system/" + filepath.Base(u)
		if filepath.Ext(u) == ".conf" {
			to = "/usr/lib/sysusers.d/" + filepath.Base(u)
		}
		// Cut the comments at the top, which describe how to install a unit by hand.
		if i := bytes.Index(b, []byte("\n[")); i >= 0 && bytes.HasPrefix(b, []byte("#")) {
			b = b[i+1:]
		}
		if err := add(to, bytes.ReplaceAll(b, []byte("/usr/local/bin/"), []byte("/usr/bin/")), 0o644, files.TypeFile); err != nil {
			return err
		}
	}
	config, err := os.ReadFile("nized.toml") // beside this program, like the scripts
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(r.tree, "LICENSE"))
	if err != nil {
		return err
	}
	if err := errors.Join(
		add("/etc/nize/nized.toml", config, 0o644, files.TypeConfigNoReplace),
		add("/usr/share/doc/nize/copyright", licence, 0o644, files.TypeFile),
		add("/usr/share/doc/nize/LICENSES.txt", licences, 0o644, files.TypeFile),
	); err != nil {
		return err
	}
	scripts := "deb"
	info := &nfpm.Info{
		Name: "nize", Arch: t.arch, Platform: "linux", Version: r.version, Section: "net", Priority: "optional",
		Maintainer: "nize maintainers <maintainers@nize.invalid>", License: "Apache-2.0", MTime: r.date,
		Description: "chat assistant that a team can let near its real tools\n nized keeps MCP servers, an index of their tools and an audit trail, and asks a\n person before it runs a tool. nizectl steers it.",
		Overridables: nfpm.Overridables{
			Contents:   contents,
			Recommends: []string{"ca-certificates"},
			Scripts:    nfpm.Scripts{PostInstall: filepath.Join(scripts, "postinst"), PreRemove: filepath.Join(scripts, "prerm"), PostRemove: filepath.Join(scripts, "postrm")},
			RPM:        nfpm.RPM{BuildHost: "localhost"},
		},
	}
	for _, format := range formats {
		if err := r.pack(format, *info); err != nil {
			return fmt.Errorf("%s of %s: %w", format, t.arch, err)
		}
	}
	return nil
}

func (r *release) pack(format string, info nfpm.Info) (err error) {
	p, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	one := nfpm.WithDefaults(&info)
	if err := nfpm.PrepareForPackager(one, format); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.out, p.ConventionalFileName(one)))
	if err != nil {
		return err
	}
	return errors.Join(p.Package(one, f), f.Close())
}

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(b); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}
