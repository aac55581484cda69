package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/kubelet/claims"
)

const disksHeading = "### Encrypt the disks of a release"

// encryptedChart is a release whose disks are encrypted from the beginning.
type encryptedChart struct{ chart }

func (s encryptedChart) install(ctx context.Context, c *cluster, class string) error {
	if err := c.encryptDisks(ctx); err != nil {
		return err
	}
	return s.chart.install(ctx, c, class)
}

// drawing is what is typed to draw keys for the disks of a release.
func (c *cluster) drawing() procedure {
	return procedure{heading: disksHeading, only: []string{"create secret generic"}}
}

// replacing is what is typed to give the members other keys.
func (c *cluster) replacing() procedure {
	return procedure{heading: disksHeading, leaves: []string{"create secret generic", "extraFlags:"},
		names: []string{" db key ", " " + chartName + " key ", " db doctor", " " + chartName + " doctor"}}
}

// encryptDisks draws keys, and writes a file with the values of the page.
func (c *cluster) encryptDisks(ctx context.Context) error {
	if _, err := c.follow(ctx, c.drawing()); err != nil {
		return err
	}
	all, err := c.script(procedure{heading: disksHeading, only: []string{"extraFlags:"}})
	if err != nil {
		return err
	}
	c.valuesFile = filepath.Join(c.directory, c.namespace+".disks.yaml")
	return os.WriteFile(c.valuesFile, []byte(all[0]), 0o644)
}

// chartDisks encrypts the disks of a release from the beginning, and replaces the keys while no pod restarts. A pod that is
// lost then opens its disk by the new key, and a member that loses its disk gets another one. No disk ever has what clients
// wrote.
func chartDisks(ctx context.Context, c *cluster) error {
	planted := "planted-in-" + c.namespace
	if err := c.plant(ctx, planted); err != nil {
		return err
	}
	if err := errors.Join(c.progress(ctx, someWrites), c.unreadable(ctx, planted)); err != nil {
		return err
	}
	before, err := c.lives(ctx)
	if err != nil {
		return err
	}
	said, err := c.follow(ctx, c.replacing())
	if err != nil {
		return err
	}
	wrapped := regexp.MustCompile(`(?m)^quorate-\d: was wrapped by (.*), is wrapped by (.*)$`).FindAllStringSubmatch(said, -1)
	if len(wrapped) != replicas {
		return fmt.Errorf("not all members have new keys: %s", said)
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	if err := c.restartOne(ctx, before); err != nil {
		return err
	}
	if err := errors.Join(c.ready(ctx), c.progress(ctx, someWrites)); err != nil {
		return err
	}
	if err := errors.Join(deleteClaim(ctx, c), c.ready(ctx), c.progress(ctx, someWrites)); err != nil {
		return err
	}
	saved := filepath.Join(c.directory, c.namespace+".db")
	if said, status := c.runPlugin(ctx, c.plane.Kubeconfig, "snapshot", "save", saved); status != 0 {
		return fmt.Errorf("no file is saved: %s", said)
	}
	return c.unreadable(ctx, planted)
}

// plant writes a text to the cluster, and to the API server, whose own Quorate is not encrypted.
func (c *cluster) plant(ctx context.Context, text string) error {
	client, err := c.access.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	call, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	if _, err := client.Put(call, "/planted", text); err != nil {
		return err
	}
	plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "planted"}, Data: map[string]string{"text": text}}
	_, err = c.plane.Client.CoreV1().ConfigMaps(c.namespace).Create(ctx, plain, metav1.CreateOptions{})
	return err
}

// unreadable fails if a disk of the release has a planted text, or a key that clients wrote. The same search must find the text
// on the disk of the API server's Quorate.
func (c *cluster) unreadable(ctx context.Context, planted string) error {
	where, _, err := holding(filepath.Join(c.directory, "plane"), planted)
	if err != nil {
		return err
	}
	if where == "" {
		return errors.New("the search finds nothing on a disk that is not encrypted")
	}
	all, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(all.Items) != replicas {
		return fmt.Errorf("there are %d claims", len(all.Items))
	}
	for _, claim := range all.Items {
		volume, err := c.plane.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		where, searched, err := holding(claims.Directory(c.root, volume), planted, writePath, "/planted")
		switch {
		case err != nil:
			return err
		case where != "":
			return fmt.Errorf("%s of %s is in the clear", where, claim.Name)
		case searched == 0:
			return fmt.Errorf("%s has no bytes", claim.Name)
		}
	}
	return nil
}

// holding is a file below a directory that has one of the texts, if there is one, and how many bytes were searched. Files may
// go meanwhile.
func holding(directory string, texts ...string) (where string, searched int, err error) {
	err = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() ||
			strings.HasSuffix(path, ".log") { // of a process, such as the API server
			return nil
		}
		if err != nil {
			return err
		}
		bytesOf, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		searched += len(bytesOf)
		for _, text := range texts {
			if bytes.Contains(bytesOf, []byte(text)) {
				where = path
				return fs.SkipAll
			}
		}
		return nil
	})
	return where, searched, err
}
