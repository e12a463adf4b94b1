package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// chart packs the Helm chart as helm itself would, with the release's version as that of
// the chart and of the image.
func (r *release) chart() error {
	dir := filepath.Join(r.tree, "scripts/kubernetes/chart")
	var list []entry
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		to, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if to == "Chart.yaml" {
			named := bytes.ReplaceAll(b, []byte("ersion: 0.0.0\n"), fmt.Appendf(nil, "ersion: %q\n", r.version))
			if bytes.Count(named, []byte(r.version)) != 2 {
				return errors.New("Chart.yaml has no version and appVersion of 0.0.0 to replace")
			}
			b = named
		}
		list = append(list, entry{to: to, data: b, mode: 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	return r.writeTarGz(r.path("nize-%s.tgz", r.version), "nize", list)
}
