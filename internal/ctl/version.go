package ctl

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
)

// versionReport is what `quorate version -o json` prints.
type versionReport struct {
	Version string      `json:"version"`
	Commit  string      `json:"commit"`
	Etcd    string      `json:"etcd"`
	Go      string      `json:"go"`
	OS      string      `json:"os"`
	Arch    string      `json:"arch"`
	Level   levelReport `json:"level"`
	// Modules are those that are in the program, as the program itself records them; none if it does not.
	Modules []moduleReport `json:"modules"`
}

// levelReport has the feature levels of a build: those of clusters and data that it reads, and the highest that it writes, once
// all members of the cluster know it.
type levelReport struct {
	ReadsFrom level.Level `json:"reads_from"`
	ReadsTo   level.Level `json:"reads_to"`
	Writes    level.Level `json:"writes"`
}

type moduleReport struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

func newVersion(s command.Streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "text":
				config.WriteVersion(s.Out)
			case "json":
				return command.PrintJSON(s.Out, reportVersion(debug.ReadBuildInfo()))
			default:
				return command.Usagef("--output %s: write text or json", output)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json: with the feature level and the modules")
	return c
}

func reportVersion(info *debug.BuildInfo, known bool) versionReport {
	r := versionReport{Version: config.Build(), Commit: config.Revision(), Etcd: config.EtcdVersion, Go: runtime.Version(),
		OS: runtime.GOOS, Arch: runtime.GOARCH, Modules: []moduleReport{},
		Level: levelReport{ReadsFrom: level.First, ReadsTo: level.Own, Writes: level.Own}}
	if !known {
		return r
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		r.Modules = append(r.Modules, moduleReport{module.Path, module.Version, module.Sum})
	}
	return r
}
