package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image is the image of one architecture.
type image struct {
	v1.Image
	arch string
}

// image builds the image of a target, as scripts/container/Containerfile describes it.
func (r *release) image(t target) (image, error) {
	const state = 65532
	list := []entry{
		{to: "var", dir: true, mode: 0o755}, {to: "var/lib", dir: true, mode: 0o755}, {to: "var/lib/nize", dir: true, mode: 0o755, uid: state},
		{to: "usr", dir: true, mode: 0o755}, {to: "usr/local", dir: true, mode: 0o755}, {to: "usr/local/bin", dir: true, mode: 0o755},
		{to: "etc", dir: true, mode: 0o755}, {to: "etc/ssl", dir: true, mode: 0o755}, {to: "etc/ssl/certs", dir: true, mode: 0o755},
		{to: "tmp", dir: true, mode: 0o1777},
	}
	for _, p := range programs {
		list = append(list, entry{to: "usr/local/bin/" + p, from: filepath.Join(r.programsOf(t), p), mode: 0o755})
	}
	roots, err := certificates()
	if err != nil {
		return image{}, err
	}
	list = append(list, entry{to: "etc/ssl/certs/ca-certificates.crt", data: roots, mode: 0o644})
	var layer bytes.Buffer
	if err := r.writeTar(&layer, "", list); err != nil {
		return image{}, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return image{}, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	im, err := mutate.Append(base, mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "make release"}})
	if err != nil {
		return image{}, err
	}
	file, err := im.ConfigFile()
	if err != nil {
		return image{}, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = t.os, t.arch, v1.Time{Time: r.date}
	file.Config = v1.Config{
		User: fmt.Sprint(state), Entrypoint: []string{"nized"}, StopSignal: "SIGTERM", WorkingDir: "/",
		Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/nize", "NIZE_DATA_DIR=/var/lib/nize/data"},
		ExposedPorts: map[string]struct{}{"19560/tcp": {}}, Volumes: map[string]struct{}{"/var/lib/nize": {}},
		Labels: map[string]string{"org.opencontainers.image.title": "nize", "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	im, err = mutate.ConfigFile(im, file)
	return image{im, t.arch}, err
}

// certificates returns the authorities that this machine trusts.
func certificates() ([]byte, error) {
	for _, path := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"} {
		if b, err := os.ReadFile(path); err == nil {
			return b, nil
		}
	}
	return nil, errors.New("this machine has no certificate authorities to copy; install ca-certificates")
}

// archiveImages writes all of them as one archive in the OCI layout, which skopeo, podman,
// docker and containerd load. The archive names one image, an index of the architectures: a
// program that finds several images asks which one to use, and loads none.
func (r *release) archiveImages(all []image) (err error) {
	index := func() v1.ImageIndex { return mutate.IndexMediaType(empty.Index, types.OCIImageIndex) }
	platforms := index()
	for _, one := range all {
		platforms = mutate.AppendManifests(platforms, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: one.arch},
		}})
	}
	dir := filepath.Join(r.work, "oci")
	if _, err := layout.Write(dir, mutate.AppendManifests(index(), mutate.IndexAddendum{Add: platforms, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version},
	}})); err != nil {
		return fmt.Errorf("writing the images: %w", err)
	}
	var list []entry
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		to, err := filepath.Rel(dir, p)
		if d.IsDir() {
			list = append(list, entry{to: to, dir: true, mode: 0o755})
		} else {
			list = append(list, entry{to: to, from: p, mode: 0o644})
		}
		return err
	}); err != nil {
		return err
	}
	f, err := os.Create(r.path("nize_%s_oci.tar", r.version))
	if err != nil {
		return err
	}
	return errors.Join(r.writeTar(f, "", list), f.Close())
}
