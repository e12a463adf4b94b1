package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// allowed are the licences under which nize may be distributed with what it links in.
var allowed = []string{"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "BSD-0-Clause", "0BSD", "ISC", "Unlicense", "CC0-1.0", "MPL-2.0", "Zlib", "OFL-1.1", "Unicode-DFS-2016", "Unicode-3.0", "BSL-1.0"}

// module is linked into the programs, or vendored by the chat page.
type module struct {
	path, version, sum string
	npm                bool // otherwise a Go module
	licences           []string
	text               []byte
}

// materials writes the bill of materials of a target, and returns the texts of all
// licences. It returns an error if a module has no licence or one that is not allowed.
func (r *release) materials(t target) ([]byte, error) {
	linked := map[string]module{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(r.programsOf(t), p))
		if err != nil {
			return nil, fmt.Errorf("reading what %s is made of: %w", p, err)
		}
		for _, d := range info.Deps {
			for d.Replace != nil {
				d = d.Replace
			}
			linked[d.Path] = module{path: d.Path, version: d.Version, sum: d.Sum}
		}
	}
	language := module{path: "stdlib", version: strings.TrimPrefix(toolchain, "go")}
	root, wrong := r.exec1("go", "env", "GOROOT")
	if wrong == nil {
		wrong = language.readLicence(root)
	}
	all := []module{language}
	for _, m := range linked {
		dir, err := r.exec1("go", "list", "-m", "-f", "{{.Dir}}", m.path)
		if err == nil {
			err = m.readLicence(dir)
		}
		wrong = errors.Join(wrong, err)
		all = append(all, m)
	}
	vendored, err := r.vendored()
	embedded, err2 := r.embedded()
	if err = errors.Join(wrong, err, err2); err != nil {
		return nil, err
	}
	all = append(append(all, vendored...), embedded...)
	slices.SortFunc(all, func(a, b module) int {
		return cmp.Or(strings.Compare(a.path, b.path), strings.Compare(a.version, b.version))
	})
	return licenceTexts(all), r.writeBill(t, all)
}

func (r *release) exec1(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = r.tree, os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice)([.-].*)?$`)

// readLicence finds the licence in the files of a module.
func (m *module) readLicence(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the licence of %s: %w", m.path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		m.addLicence(b)
	}
	return m.check()
}

// addLicence adds the text of a licence, and the licences that are found in it.
func (m *module) addLicence(text []byte) {
	m.text = append(append(m.text, bytes.TrimSpace(text)...), "\n\n"...)
	for _, found := range licensecheck.Scan(text).Match {
		if !found.IsURL && !slices.Contains(m.licences, found.ID) {
			m.licences = append(m.licences, found.ID)
		}
	}
}

func (m *module) check() error {
	slices.Sort(m.licences)
	switch {
	case len(m.licences) == 0:
		return fmt.Errorf("%s %s has no licence that is known", m.path, m.version)
	case !slices.ContainsFunc(m.licences, func(id string) bool { return slices.Contains(allowed, id) }):
		return fmt.Errorf("%s %s is under %s, which is not among the allowed licences", m.path, m.version, strings.Join(m.licences, ", "))
	}
	return nil
}

func licenceTexts(all []module) []byte {
	var b bytes.Buffer
	b.WriteString("nize links in, or ships with its chat page, what follows, under these licences.\n")
	for _, m := range all {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n\n%s", strings.Repeat("-", 78), m.path, m.version, strings.Join(m.licences, ", "), m.text)
	}
	return b.Bytes()
}

// writeBill writes the bill of materials, CycloneDX 1.6, without the serial number and the
// time, which would differ each time.
func (r *release) writeBill(t target, all []module) (err error) {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.date.Format("2006-01-02T15:04:05Z"), Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "nize", Name: "nize", Version: r.version, Properties: &[]cdx.Property{{Name: "os", Value: t.os}, {Name: "arch", Value: t.arch}, {Name: "commit", Value: r.commit}}}}
	var parts []cdx.Component
	var refs []string
	for _, m := range all {
		kind := "golang"
		if m.npm {
			kind = "npm"
		}
		url := fmt.Sprintf("pkg:%s/%s@%s", kind, m.path, m.version)
		var ids cdx.Licenses
		for _, id := range m.licences {
			ids = append(ids, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.path, Version: m.version, PackageURL: url, Licenses: &ids}
		if m.sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.sum}}
		}
		parts, refs = append(parts, c), append(refs, url)
	}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: "nize", Dependencies: &refs}}
	f, err := os.Create(r.path("nize_%s_%s_%s.cdx.json", r.version, t.os, t.arch))
	if err != nil {
		return err
	}
	return errors.Join(cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6), f.Close())
}
