package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"nize/scripts/release/licences"
)

// materials writes the bill of materials of a target, and returns the texts of all
// licences. It returns an error if a module has no licence or one that is not allowed.
func (r *release) materials(t target) ([]byte, error) {
	linked := map[string]licences.Module{}
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(r.programsOf(t), p))
		if err != nil {
			return nil, fmt.Errorf("reading what %s is made of: %w", p, err)
		}
		for _, d := range info.Deps {
			for d.Replace != nil {
				d = d.Replace
			}
			linked[d.Path] = licences.Module{Path: d.Path, Version: d.Version, Sum: d.Sum}
		}
	}
	all, err := licences.Of(r.tree, toolchain, slices.Collect(maps.Values(linked)))
	if err != nil {
		return nil, err
	}
	return licenceTexts(all), r.writeBill(t, all)
}

func licenceTexts(all []licences.Module) []byte {
	var b bytes.Buffer
	b.WriteString("nize links in, or ships with its chat page, what follows, under these licences.\n")
	for _, m := range all {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n\n%s", strings.Repeat("-", 78), m.Path, m.Version, strings.Join(m.Licences, ", "), m.Text)
	}
	return b.Bytes()
}

// writeBill writes the bill of materials, CycloneDX 1.6, without the serial number and the
// time, which would differ each time.
func (r *release) writeBill(t target, all []licences.Module) (err error) {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.date.Format("2006-01-02T15:04:05Z"), Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "nize", Name: "nize", Version: r.version, Properties: &[]cdx.Property{{Name: "os", Value: t.os}, {Name: "arch", Value: t.arch}, {Name: "commit", Value: r.commit}}}}
	var parts []cdx.Component
	var refs []string
	for _, m := range all {
		kind := "golang"
		if m.NPM {
			kind = "npm"
		}
		url := fmt.Sprintf("pkg:%s/%s@%s", kind, m.Path, m.Version)
		var ids cdx.Licenses
		for _, id := range m.Licences {
			ids = append(ids, cdx.LicenseChoice{License: &cdx.License{ID: id}})
		}
		c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url, Licenses: &ids}
		if m.Sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
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
