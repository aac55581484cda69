package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// sections are the nested maps of etcd's file, with the flag that each of their keys stands for. An empty name marks
// a key that has no flag.
var sections = map[string]map[string]string{
	"client-transport-security": {
		"cert-file": "cert-file", "key-file": "key-file", "client-cert-file": "client-cert-file",
		"client-key-file": "client-key-file", "client-cert-auth": "client-cert-auth",
		"trusted-ca-file": "trusted-ca-file", "auto-tls": "auto-tls", "allowed-cn": "client-cert-allowed-cn",
		"allowed-hostname": "client-cert-allowed-hostname", "skip-client-san-verification": "",
	},
	"peer-transport-security": {
		"cert-file": "peer-cert-file", "key-file": "peer-key-file", "client-cert-file": "peer-client-cert-file",
		"client-key-file": "peer-client-key-file", "client-cert-auth": "peer-client-cert-auth",
		"trusted-ca-file": "peer-trusted-ca-file", "auto-tls": "peer-auto-tls", "allowed-cn": "peer-cert-allowed-cn",
		"allowed-hostname":             "peer-cert-allowed-hostname",
		"skip-client-san-verification": "peer-skip-client-san-verification",
	},
	"socket-options": {"reuse-port": "socket-reuse-port", "reuse-address": "socket-reuse-address"},
}

// abandoned are keys that etcd's sample file still carries although nothing reads them.
var abandoned = []string{
	"proxy", "proxy-failure-wait", "proxy-refresh-interval", "proxy-dial-timeout", "proxy-write-timeout",
	"proxy-read-timeout",
}

// loadFile applies a YAML or JSON file. Unknown keys are faults: a misspelt key that is skipped in silence is the
// kind of mistake that shows months later.
func (c *Config) loadFile(path string) Faults {
	c.source = path
	raw, err := os.ReadFile(path)
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return Faults{fmt.Sprintf("--config-file %s cannot be read: %v", path, err)}
	}
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return Faults{fmt.Sprintf("--config-file %s: %v", path, err)}
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var keys map[string]any
	if err := decoder.Decode(&keys); err != nil {
		return Faults{fmt.Sprintf("--config-file %s: must be a map of settings", path)}
	}
	var faults Faults
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		for _, fault := range c.loadKey(key, keys[key]) {
			faults = append(faults, path+": "+fault)
		}
	}
	return faults
}

func (c *Config) loadKey(key string, content any) Faults {
	section := sections[key]
	switch {
	case content == nil, slices.Contains(abandoned, key):
		return nil
	case key == "discovery-config":
		return Faults{key + ": write discovery-token, discovery-endpoints and so on, as the flags are called"}
	case section != nil:
		return c.loadSection(key, section, content)
	}
	s := find(key)
	if s == nil {
		hint := ""
		if near := Nearest(key, fileKeys()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return Faults{"unknown key " + key + hint}
	}
	return c.loadValue(s, key, content)
}

func (c *Config) loadSection(key string, section map[string]string, content any) Faults {
	inner, ok := content.(map[string]any)
	if !ok {
		return Faults{key + ": must be a map"}
	}
	var faults Faults
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		flag, known := section[name]
		as := key + "." + name
		switch {
		case !known:
			faults = append(faults, "unknown key "+as)
		case flag == "" && !isEmpty(inner[name]):
			faults = append(faults, as+": is not supported yet")
		case flag != "" && inner[name] != nil:
			faults = append(faults, c.loadValue(find(flag), as, inner[name])...)
		}
	}
	return faults
}

func (c *Config) loadValue(s *setting, as string, content any) Faults {
	text, err := textOf(s, content)
	if err == nil && text == "" && s.value.text(c) != "" {
		return nil // an empty value stands for the default, as in etcd's sample file
	}
	if err == nil {
		err = s.value.set(c, text)
	}
	if err != nil {
		return Faults{fmt.Sprintf("%s: %v", as, err)}
	}
	c.explicit[s.name] = true
	return c.refusal(s, as)
}

// textOf turns a value of the file into the text that a flag would carry.
func textOf(s *setting, content any) (string, error) {
	switch v := content.(type) {
	case string:
		return v, nil
	case bool:
		return fmt.Sprint(v), nil
	case json.Number:
		if isDuration(s.value) {
			nanos, err := v.Int64()
			if err != nil {
				return "", errNotDuration
			}
			return time.Duration(nanos).String(), nil
		}
		return v.String(), nil
	case []any:
		var parts []string
		for _, part := range v {
			text, ok := part.(string)
			if !ok {
				return "", errors.New("must be a list of texts")
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), nil
	default:
		return "", errors.New("must be a single value or a list")
	}
}

// isDuration tells whether a bare number in the file means nanoseconds: for durations with a unit, but not for those
// that etcd counts in milliseconds or seconds.
func isDuration(v value) bool {
	if n, ok := v.(named); ok {
		return n.sample != nil && isDuration(n.sample)
	}
	f, ok := v.(field[time.Duration])
	return ok && f.plain == nil
}

func isEmpty(content any) bool {
	switch v := content.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

func fileKeys() []string {
	var keys []string
	for i := range settings {
		keys = append(keys, settings[i].name)
	}
	for key := range sections {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// WriteYAML prints the effective configuration in the form of a configuration file. Of secrets it says only that they are
// given.
func (c *Config) WriteYAML(w io.Writer) error {
	var out bytes.Buffer
	for _, g := range groups {
		var lines []string
		for i := range g.settings {
			s := &g.settings[i]
			if s.effect != inEffect && s.value.text(c) == s.def {
				continue
			}
			key := s.name
			if s.secret && s.value.text(c) != "" {
				lines = append(lines, fmt.Sprintf("# %s: %s\n", key, blank))
				continue
			}
			line, err := yaml.Marshal(map[string]any{key: s.value.yaml(c)})
			if err != nil {
				return fmt.Errorf("config: print %s: %w", key, err)
			}
			lines = append(lines, string(line))
		}
		if len(lines) > 0 {
			fmt.Fprintf(&out, "# %s\n%s\n", g.title, strings.Join(lines, ""))
		}
	}
	_, err := w.Write(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
	return err
}
