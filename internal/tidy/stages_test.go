package tidy_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	ciFile       = ".ci/run"
	makeFile     = "Makefile"
	stagesTold   = "CONTRIBUTING.md"
	stagesScript = ".ci/stages"
)

// TestStages requires that CI runs what the documents say: the README's test command is that of the stage `test`, CI runs
// `make check`, which runs the stages of the Makefile's list, and CONTRIBUTING.md has a row for each of them.
func TestStages(t *testing.T) { check(t, checkStages) }

var (
	readmeTest = regexp.MustCompile(`(?m)^\$ (go test [^#\n]*)`)
	makeSets   = regexp.MustCompile(`(?m)^(STAGES|MODULES|PACKAGES) \??= (.*)$`)
	goFlag     = regexp.MustCompile(` -(timeout \S+|\S+)`)
	inModule   = regexp.MustCompile(`\bcd ([a-z0-9/]+) &&`)
	stageRow   = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|")
)

func checkStages(r *tree) []string {
	var p report
	set, targets := map[string]string{}, recipes(r.read(makeFile))
	for _, match := range makeSets.FindAllStringSubmatch(r.read(makeFile), -1) {
		set[match[1]] = match[2]
	}
	if !strings.Contains(r.read(ciFile), "exec make check\n") ||
		!strings.Contains(targets["check"], stagesScript+" $(STAGES)") {
		p.addf("%s does not end with `make check`, or that does not run %s with $(STAGES)", ciFile, stagesScript)
	}
	command := readmeTest.FindStringSubmatch(r.read("README.md"))
	if command == nil {
		p.addf("README.md: no line begins with `$ go test`")
	} else if want := strings.TrimSpace(command[1]); !runs(targets["test"], want, set["PACKAGES"]) {
		p.addf("%s: `test` does not run the README's `%s`", makeFile, want)
	}
	var told []string
	for _, row := range stageRow.FindAllStringSubmatch(section(r.read(stagesTold), "Stages"), -1) {
		told = append(told, row[1])
	}
	stages := strings.Fields(set["STAGES"])
	if !slices.Equal(told, stages) {
		p.addf("%s: the rows of \"Stages\" are %v, those of %s are %v", stagesTold, told, makeFile, stages)
	}
	for _, stage := range stages {
		if targets[stage] == "" {
			p.addf("%s: the stage %s has no recipe", makeFile, stage)
		}
		for _, module := range inModule.FindAllStringSubmatch(targets[stage], -1) {
			if !slices.Contains(strings.Fields(set["MODULES"]), module[1]) {
				p.addf("%s: %s runs in %s, which is missing in MODULES: what it needs is not downloaded before", makeFile, stage,
					module[1])
			}
		}
	}
	return p
}

// runs reports whether a line of a recipe is a command, whatever its flags are.
func runs(recipe, command, packages string) bool {
	// $(FIRST) are some of all packages, which the order of the others does not change.
	recipe = strings.NewReplacer("$(GO)", "go", "$(FIRST) ", "", "$(PACKAGES)", packages).Replace(recipe)
	return slices.Contains(strings.Split(goFlag.ReplaceAllString(recipe, ""), "\n"), command)
}

// recipes returns the lines below each target of a makefile. Of several targets of one line each has them.
func recipes(makefile string) map[string]string {
	all, now := map[string]string{}, []string(nil)
	for line := range strings.Lines(makefile) {
		if command, is := strings.CutPrefix(line, "\t"); is {
			for _, name := range now {
				all[name] += command
			}
			continue
		}
		names, _, isRule := strings.Cut(line, ":")
		if now = nil; isRule && !strings.ContainsAny(names, "#=") {
			now = strings.Fields(names)
		}
	}
	maps.DeleteFunc(all, func(_, recipe string) bool { return strings.TrimSpace(recipe) == "" })
	return all
}

const makeOf = "PACKAGES ?= ./...\nMODULES = . test/bench\nfmt vet: build\n\tgofmt -l .\ncheck:\n\t.ci/stages $(STAGES)\n" +
	"test:\n\t$(GO) test -count=1 -timeout 20m $(PACKAGES)\n"

// stagesOf are the files of a small tree that runs its stages as it says, with more lines of the recipe of `test`, and with
// files that replace some.
func stagesOf(more string, replaced ...string) sources {
	s := sources{
		ciFile: "exec make check\n", makeFile: "STAGES ?= fmt test\n" + makeOf + more,
		"README.md": "$ go test ./...   # all\n", stagesTold: "\n## Stages\n| `fmt` | x |\n| `test` | x |\n",
	}
	for i := 0; i < len(replaced); i += 2 {
		s[replaced[i]] = replaced[i+1]
	}
	return s
}
