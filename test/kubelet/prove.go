package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// proving is what is typed to prove that the state of a time can be restored, in a pod of its own.
func (c *cluster) proving(place, at string) procedure {
	return procedure{heading: "### Restore into another release", only: []string{"name: db-verify"},
		names: []string{"registry.example.com/quorate:v1.1.0", "quorate:now", "s3://backups/prod", place,
			"2026-11-30T12:00:00Z", at}}
}

var provenLine = regexp.MustCompile(`(?m)^proved: entry (\d+), revision (\d+), of `)

// proved is the revision of a proof, by what its pod said.
func proved(said string) (int64, error) {
	found := provenLine.FindStringSubmatch(said)
	if found == nil {
		return 0, fmt.Errorf("the pod proves nothing: %s", said)
	}
	return strconv.ParseInt(found[2], 10, 64)
}

// chartProve ships, and proves a time by a pod, whose state must be that of the time. Then all segments of the backup are
// damaged, which the pod must say; and once they are as they were it proves the time again. Clients write, but for a moment.
func chartProve(ctx context.Context, c *cluster) error {
	place, at, err := c.shipMoment(ctx)
	if err != nil {
		return err
	}
	prove := func() error {
		said, err := c.follow(ctx, c.proving(place, at.at))
		if err != nil {
			return err
		}
		revision, err := proved(said)
		if err != nil {
			return err
		}
		for key, r := range c.writer.keys() {
			if (at.acked[key] > 0) != (r <= revision) {
				return fmt.Errorf("revision %d is not that of the time: %s got %d, %v before it", revision, key, r,
					at.acked[key] > 0)
			}
		}
		return nil
	}
	if err := prove(); err != nil {
		return err
	}
	damaged, err := c.segments()
	if err != nil {
		return err
	}
	if err := flip(damaged); err != nil {
		return err
	}
	said, err := c.follow(ctx, c.proving(place, at.at)) // the pod stays, and the commands end without an error
	switch {
	case err != nil:
		return err
	case provenLine.MatchString(said):
		return fmt.Errorf("with damaged segments the pod says: %s", said)
	case !slices.ContainsFunc(damaged, func(path string) bool { return strings.Contains(said, filepath.Base(path)) }):
		return fmt.Errorf("the pod names none of the damaged objects: %s", said)
	}
	if err := flip(damaged); err != nil {
		return err
	}
	if out, status := c.runProgram(ctx, "kubectl", "--kubeconfig", c.plane.Kubeconfig, "-n", c.namespace, "delete", "pod",
		"db-verify"); status != 0 {
		return errors.New(out)
	}
	return prove()
}

// segments are the files in which the server of S3 keeps the segments of the cluster's backup.
func (c *cluster) segments() (all []string, err error) {
	err = filepath.WalkDir(c.places.directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasSuffix(path, ".ql") &&
			strings.Contains(path, "backup-"+c.namespace+"/") {
			all = append(all, path)
		}
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the backup has no segment")
	}
	return all, err
}

// flip changes the byte in the middle of each file, or changes it back.
func flip(files []string) error {
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		middle := len(text) / 2
		_, err = file.WriteAt([]byte{text[middle] ^ 1}, int64(middle))
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
