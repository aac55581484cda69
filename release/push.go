package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// push brings the image of a file to a registry, with the logins of docker. It is checked before: a registry gets a whole
// image or none under the name, since the name is written last.
func push(ctx context.Context, file, to string) (digest string, err error) {
	ref, err := name.ParseReference(to, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("%s is no name of an image: write HOST/NAME:TAG (%w)", to, err)
	}
	dir, err := os.MkdirTemp("", "release-push-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index, err := readImage(file, dir)
	if err != nil {
		return "", fmt.Errorf("%s is no image of a release: %w", file, err)
	}
	if err := validate.Index(index, validate.Fast); err != nil {
		return "", fmt.Errorf("the image in %s is damaged: %s", file, firstLine(err.Error()))
	}
	logins := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), logins); err != nil {
		return "", fmt.Errorf("the registry %s refused %s: %s", ref.Context().RegistryStr(), to, reason(err))
	}
	hash, err := index.Digest()
	return hash.String(), err
}

// reason is what a registry says, in a line.
func reason(err error) string {
	var refused *transport.Error
	if errors.As(err, &refused) {
		said := fmt.Sprintf("%d %s", refused.StatusCode, http.StatusText(refused.StatusCode))
		if len(refused.Errors) > 0 {
			said += ", " + firstLine(refused.Errors[0].String())
		}
		return said
	}
	return firstLine(err.Error())
}

// readImage unpacks a layout into a directory, and returns its index.
func readImage(file, dir string) (v1.ImageIndex, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if !filepath.IsLocal(header.Name) || header.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("it has %q, which no layout has", header.Name)
		}
		path := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := writeFrom(path, r); err != nil {
			return nil, err
		}
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d images in the place of one", len(manifest.Manifests))
	}
	return outer.ImageIndex(manifest.Manifests[0].Digest)
}

func writeFrom(path string, in io.Reader) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
