package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Statement is an in-toto statement (v1) with a predicate of SLSA's provenance (v1). They are two documents of JSON with a
// dozen fields: in-toto-golang would bring gRPC, protobuf and SPIFFE for them.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			InternalParameters   map[string]string `json:"internalParameters"`
			ResolvedDependencies []Resource        `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

// Resource is a file or a source, with what identifies it.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = homepage + "/release"
)

// makeProvenance says what the files beside path were made from and how. It names no time, host or user of the build, so that
// everybody who makes the release again makes this statement, too.
func (r *Release) makeProvenance(_ context.Context, _ Target, path string) error {
	s := Statement{Type: statementType, PredicateType: predicateType}
	subjects, err := filesBeside(path)
	if err != nil {
		return err
	}
	s.Subject = subjects
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]string{"version": string(r.Version), "commit": r.Tree.Commit,
		"sourceDateEpoch": fmt.Sprint(r.Time.Unix())}
	definition.InternalParameters = map[string]string{"go": r.Go.version, "ldflags": r.linkerFlags(),
		"dirty": fmt.Sprint(r.Tree.Dirty)}
	source := Resource{URI: "git+" + homepage + "@" + r.Tree.Commit, Digest: map[string]string{"gitCommit": r.Tree.Commit}}
	definition.ResolvedDependencies = []Resource{source}
	sums := []string{"go.sum", "release/go.sum"}
	for _, p := range r.Product.Beside {
		if sum := filepath.Join(p.Dir, "go.sum"); !slices.Contains(sums, sum) {
			sums = append(sums, sum)
		}
	}
	for _, name := range sums {
		digest, err := sha256Of(filepath.Join(r.Tree.Dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, Resource{Name: name,
			Digest: map[string]string{"sha256": digest}})
	}
	s.Predicate.RunDetails.Builder.ID = buildType
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// makeSums writes the sums of the files beside path, as sha256sum reads them.
func (r *Release) makeSums(_ context.Context, _ Target, path string) error {
	files, err := filesBeside(path)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		fmt.Fprintf(&lines, "%s  %s\n", file.Digest["sha256"], file.Name)
	}
	return os.WriteFile(path, []byte(lines.String()), 0o644)
}

// filesBeside are the files that were made so far in the directory of a path, by name.
func filesBeside(path string) ([]Resource, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var files []Resource
	for _, entry := range entries {
		digest, err := sha256Of(filepath.Join(filepath.Dir(path), entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, Resource{Name: entry.Name(), Digest: map[string]string{"sha256": digest}})
	}
	return files, nil
}

func sha256Of(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
