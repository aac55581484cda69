package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// flags are those of one command line. Workloads that take the same flag share it.
type flags struct {
	set     *flag.FlagSet
	instead map[string]string    // what flags are that are not given, instead of what the workloads say
	taken   map[string]any       // pointers to their values, by name
	order   []string             // in which they were taken
	asked   []string             // also those that another workload had taken before
	places  map[string]bool      // files and directories, and whether what is measured needs them
	given   map[string]*[]string // what flags that may be repeated were given
}

func newFlags(command string, instead map[string]string) *flags {
	f := &flags{set: flag.NewFlagSet(command, flag.ContinueOnError), instead: instead, taken: map[string]any{},
		places: map[string]bool{}, given: map[string]*[]string{}}
	f.set.SetOutput(io.Discard) // the error says what is wrong
	return f
}

// value is one flag.
type value[T any] struct {
	to   *T
	text string
	read func(text string) (T, error)
}

// String implements flag.Value.
func (v *value[T]) String() string { return v.text }

// Set implements flag.Value.
func (v *value[T]) Set(text string) (err error) {
	v.text = text
	*v.to, err = v.read(text)
	return err
}

// IsBoolFlag lets a flag that is yes or no stand alone.
func (v *value[T]) IsBoolFlag() bool {
	_, yes := any(v.to).(*bool)
	return yes
}

// take adds a flag, or returns the one of this name that another workload has taken.
func take[T any](f *flags, name, text, about string, parse func(text string) (T, error)) *T {
	f.asked = append(f.asked, name)
	if taken, ok := f.taken[name]; ok {
		return taken.(*T) // TestCommands takes the flags of all commands
	}
	if instead, ok := f.instead[name]; ok {
		text = instead
	}
	v := &value[T]{to: new(T), read: parse}
	if err := v.Set(text); err != nil {
		panic(fmt.Sprintf("flag --%s: %v", name, err))
	}
	if v.IsBoolFlag() && text == "false" {
		v.text = "" // --help is silent about it
	}
	f.set.Var(v, name, about)
	f.taken[name], f.order = v.to, append(f.order, name)
	return v.to
}

// each adds a flag that may be repeated.
func (f *flags) each(name, about string, add func(text string) error) {
	given := new([]string)
	f.given[name] = given
	f.asked, f.order = append(f.asked, name), append(f.order, name)
	f.set.Func(name, about, func(text string) error {
		*given = append(*given, text)
		return add(text)
	})
}

func (f *flags) text(name, text, about string) *string {
	return take(f, name, text, about, func(text string) (string, error) { return text, nil })
}

// place is a file or a directory.
func (f *flags) place(name, about string, needed bool) *string {
	f.places[name] = needed
	return f.text(name, "", about)
}

func (f *flags) yes(name, about string) *bool {
	return take(f, name, "false", about, strconv.ParseBool)
}

// number has bounds, which may be reached.
func (f *flags) number(name, text, about string, least, most int) *int {
	return take(f, name, text, about, within(strconv.Atoi, least, most))
}

// numbers are one or more, with commas between, each above zero.
func (f *flags) numbers(name, text, about string) *[]int {
	return take(f, name, text, about, listOf(within(strconv.Atoi, 1, math.MaxInt)))
}

func (f *flags) decimal(name, text, about string, least, most float64) *float64 {
	return take(f, name, text, about, within(parseFloat, least, most))
}

func (f *flags) duration(name, text, about string, least time.Duration) *time.Duration {
	return take(f, name, text, about, within(time.ParseDuration, least, math.MaxInt64))
}

// choice is one of some names.
func (f *flags) choice(name, text, about string, of ...string) *string {
	return take(f, name, text, about, oneOf(of))
}

// choices are some of these names, with commas between.
func (f *flags) choices(name, text, about string, of []string) *[]string {
	return take(f, name, text, about, listOf(oneOf(of)))
}

// window is the part of a load that counts, and what is before it.
type window struct{ warm, length *time.Duration }

func (f *flags) window() window {
	return window{
		warm:   f.duration("warmup", "2s", "before each measurement", 0),
		length: f.duration("duration", "5s", "of one measurement", 1),
	}
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func oneOf(names []string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(names, text) {
			return "", fmt.Errorf("%q is none of %s", text, strings.Join(names, ", "))
		}
		return text, nil
	}
}

// within refuses what is less than the least or more than the most.
func within[T int | float64 | time.Duration](parse func(string) (T, error), least, most T) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		switch {
		case err != nil:
			return v, fmt.Errorf("%q cannot be read", text)
		case v < least:
			return v, fmt.Errorf("want at least %v", least)
		case v > most:
			return v, fmt.Errorf("want at most %v", most)
		}
		return v, nil
	}
}

func listOf[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return listBy(",", parse)
}

func listBy[T any](separator string, parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) (all []T, err error) {
		for part := range strings.SplitSeq(text, separator) {
			one, err := parse(part)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	}
}

// servers lets a command line name servers, and give them flags.
func (f *flags) servers() (named func() []cluster.Server) {
	var servers []cluster.Server
	var more []string // for all of them
	f.set.Func("server", "NAME=PATH of a binary that takes etcd's flags, or PATH; repeat it, the first is the base of ratios; "+
		"with ,users=on clients log in; ,audit=on ,backup=on ,encryption=on ,limit=on turn these on",
		func(text string) error {
			s, err := cluster.ParseServer(text)
			if err == nil {
				servers = append(servers, s)
			}
			return err
		})
	f.set.Func("flags", "NAME=FLAG,FLAG for the members of one server that is named before, or FLAG,FLAG for those of all",
		func(text string) error {
			if strings.HasPrefix(text, "-") {
				more = append(more, strings.Split(text, ",")...)
				return nil
			}
			name, list, _ := strings.Cut(text, "=")
			for i := range servers {
				if s := &servers[i]; s.Name == name {
					s.Flags = append(s.Flags, strings.Split(list, ",")...)
					return nil
				}
			}
			return fmt.Errorf("no --server %q before it", name)
		})
	return func() []cluster.Server {
		all := slices.Clone(servers)
		for i := range all {
			all[i].Flags = append(slices.Clone(all[i].Flags), more...)
		}
		return all
	}
}

// line is the command that measures the same, wherever the programs and the data lie, with flags that say something of it.
func (f *flags) line(servers []cluster.Server, say []string) string {
	text := "go run . " + f.set.Name()
	for _, s := range servers {
		text += fmt.Sprintf(" --server %s=PATH", s.Name)
		if s.Users {
			text += ",users=on"
		}
		for _, feature := range s.Features {
			text += "," + feature + "=on"
		}
		if len(s.Flags) > 0 {
			text += fmt.Sprintf(" --flags %s=%s", s.Name, strings.Join(s.Flags, ","))
		}
	}
	for _, name := range f.order {
		if !slices.Contains(say, name) {
			continue
		}
		if all := f.given[name]; all != nil {
			for _, each := range *all {
				text += fmt.Sprintf(" --%s %s", name, each)
			}
			continue
		}
		value := f.set.Lookup(name).Value
		given, yes := value.String(), value.(interface{ IsBoolFlag() bool }).IsBoolFlag()
		needed, place := f.places[name]
		switch {
		case place && (given == "" || !needed):
		case place:
			text += fmt.Sprintf(" --%s DIR", name)
		case yes && given == "true":
			text += " --" + name
		case yes:
		case given == "" || strings.ContainsAny(given, " ;"):
			text += fmt.Sprintf(" --%s '%s'", name, given)
		default:
			text += fmt.Sprintf(" --%s %s", name, given)
		}
	}
	return text
}
