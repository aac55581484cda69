package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	inImage  = "usr/local/bin/"
	rootUser = "root:x:0:0:root:/:/sbin/nologin\n"
	ownUser  = "quorate:x:65532:65532:quorate:/var/lib/quorate:/sbin/nologin\n"
	groups   = "root:x:0:\nquorate:x:65532:\n"
)

// makeImage writes an image index of all Linux targets as a layout of OCI in a tar file, which registries, docker, podman,
// containerd and skopeo read.
func (r *Release) makeImage(ctx context.Context, _ Target, path string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, target := range r.Product.Targets {
		if target.OS != "linux" {
			continue
		}
		image, err := r.image(ctx, target)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: target.OS, Architecture: target.Arch}}})
	}
	index = mutate.Annotations(index, r.annotations()).(v1.ImageIndex)
	dir, err := os.MkdirTemp(r.work, "layout-")
	if err != nil {
		return err
	}
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.Version.Number(),
		"io.containerd.image.name":          "docker.io/library/" + r.Product.Name + ":" + r.Version.Number(),
	})); err != nil {
		return err
	}
	return r.packLayout(dir, path)
}

// A later build needs both to make the same image, and OCI has no annotations for them.
const (
	goAnnotation    = "io.quorate.go"
	dirtyAnnotation = "io.quorate.dirty"
)

func (r *Release) annotations() map[string]string {
	prefix := "org.opencontainers.image."
	return map[string]string{
		prefix + "title": r.Product.Name, prefix + "description": summary, prefix + "licenses": license,
		prefix + "source": homepage, prefix + "revision": r.Tree.Commit, prefix + "version": string(r.Version),
		prefix + "created": r.Time.Format(time.RFC3339),
		goAnnotation:       r.Go.version, dirtyAnnotation: fmt.Sprint(r.Tree.Dirty),
	}
}

// image is that of one target. It has one layer, and no user but root, as etcd's has: a static pod of kubeadm mounts a
// directory that is root's, and would not start otherwise. `--user 65532:65532` and a read-only root are enough for the
// program.
func (r *Release) image(ctx context.Context, target Target) (v1.Image, error) {
	content, err := r.layer(ctx, target)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	packed, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	blob, err := io.ReadAll(packed) // once: the library would compress it again for each question about it
	if err != nil {
		return nil, err
	}
	diff, err := layer.DiffID()
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: packedLayer{static.NewLayer(blob, types.OCILayer), diff},
		History: v1.History{CreatedBy: "release", Created: v1.Time{Time: r.Time}}})
	if err != nil {
		return nil, err
	}
	config := r.configOf(target, diff, image)
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, r.annotations()).(v1.Image), nil
}

// packedLayer is a layer that is compressed already.
type packedLayer struct {
	v1.Layer
	diff v1.Hash
}

func (l packedLayer) DiffID() (v1.Hash, error) { return l.diff, nil }

func (r *Release) configOf(target Target, diff v1.Hash, image v1.Image) *v1.ConfigFile {
	config := &v1.ConfigFile{OS: target.OS, Architecture: target.Arch, Created: v1.Time{Time: r.Time}, Author: maintainer,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diff}},
		Config: v1.Config{
			Entrypoint: []string{"/" + inImage + r.Product.Name}, WorkingDir: "/var/lib/" + r.Product.Name,
			Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			ExposedPorts: map[string]struct{}{}, User: r.Product.User,
			Labels: r.annotations(), StopSignal: "SIGTERM",
		}}
	for _, port := range r.Product.Ports {
		config.Config.ExposedPorts[port] = struct{}{}
	}
	if before, err := image.ConfigFile(); err == nil {
		config.History = before.History
	}
	return config
}

// layer is the file system of the image.
func (r *Release) layer(ctx context.Context, target Target) ([]byte, error) {
	binary, err := r.binary(ctx, target)
	if err != nil {
		return nil, err
	}
	licenses, err := r.licenses(ctx)
	if err != nil {
		return nil, err
	}
	certificates, err := roots()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := &tarWriter{tar.NewWriter(&out), r.Time}
	var failures []error
	name := r.Product.Name
	for _, dir := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "tmp/", "usr/", "usr/local/", "usr/local/bin/",
		"usr/share/", "usr/share/doc/", "usr/share/doc/" + name + "/", "var/", "var/lib/", "var/lib/" + name + "/"} {
		header := w.header(tar.TypeDir, dir, 0o755, 0)
		switch dir {
		case "tmp/":
			header.Mode = 0o1777
		case "var/lib/" + name + "/":
			header.Mode, header.Uid, header.Gid = 0o700, 65532, 65532
		}
		failures = append(failures, w.WriteHeader(header))
	}
	failures = append(failures, w.add("etc/passwd", []byte(rootUser+ownUser), 0o644), w.add("etc/group", []byte(groups), 0o644),
		w.add("etc/ssl/certs/ca-certificates.crt", certificates, 0o644), w.copy(inImage+name, binary, 0o755),
		w.copy("usr/share/doc/"+name+"/LICENSE", filepath.Join(r.Tree.Dir, "LICENSE"), 0o644),
		w.copy("usr/share/doc/"+name+"/third-party-licenses", licenses, 0o644))
	for _, link := range r.Product.Linked {
		header := w.header(tar.TypeSymlink, inImage+link, 0o777, 0)
		header.Linkname = name
		failures = append(failures, w.WriteHeader(header))
	}
	failures = append(failures, w.Close())
	return out.Bytes(), errors.Join(failures...)
}

// packLayout packs a directory into a tar file, in which oci-layout and index.json are first.
func (r *Release) packLayout(dir, path string) (err error) {
	var names []string
	if err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, filepath.ToSlash(strings.TrimPrefix(at, dir+string(filepath.Separator))))
		}
		return err
	}); err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int {
		if first := strings.Count(a, "/") - strings.Count(b, "/"); first != 0 {
			return first
		}
		return strings.Compare(b, a)
	})
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := &tarWriter{tar.NewWriter(file), r.Time}
	for _, name := range names {
		if err := w.copy(name, filepath.Join(dir, name), 0o644); err != nil {
			return err
		}
	}
	return w.Close()
}
