package node

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestExpand(t *testing.T) {
	e := &environment{values: map[string]string{}}
	e.set("POD", "q-0")
	e.set("EMPTY", "")
	for text, want := range map[string]string{
		"--name=$(POD)": "--name=q-0", "$(POD)$(POD)": "q-0q-0", "$$(POD)": "$(POD)", "$(NONE)": "$(NONE)",
		"a$(EMPTY)b": "ab",
		"$POD":       "$POD", "$": "$", "$(": "$(", "$()": "$()", "": "", "$$": "$", "100%": "100%",
	} {
		if got := e.expand(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// A volume's files change all at once, and those that are gone are gone.
func TestWrite(t *testing.T) {
	directory := t.TempDir()
	step := func(files payload) {
		t.Helper()
		if err := write(directory, files); err != nil {
			t.Fatal(err)
		}
	}
	step(payload{"a": {"1", 0o644}, "b/c": {"2", 0o600}})
	data, _ := os.Readlink(filepath.Join(directory, "..data"))
	step(payload{"a": {"1", 0o644}, "b/c": {"2", 0o600}})
	if again, _ := os.Readlink(filepath.Join(directory, "..data")); again != data {
		t.Error("what has not changed is written again")
	}
	step(payload{"a": {"3", 0o644}})
	if text, err := os.ReadFile(filepath.Join(directory, "a")); err != nil || string(text) != "3" {
		t.Errorf("a is %q, %v, want 3", text, err)
	}
	if _, err := os.ReadFile(filepath.Join(directory, "b/c")); err == nil {
		t.Error("b/c is still there")
	}
	if _, err := os.Stat(filepath.Join(directory, data)); err == nil {
		t.Error("the former files are still there")
	}
}

func TestImages(t *testing.T) {
	images := Images{"quorate": Single("/all", "q"), "quorate:v1": Single("/one", "q")}
	for name, want := range map[string]string{
		"quorate": "/all", "quorate:v2": "/all", "quorate:v1": "/one",
		"registry.example.com:5000/x/quorate:v1@sha256:00": "/one",
		"registry.example.com:5000/x/quorate":              "/all", "other": "", "quoratex": "",
	} {
		image, err := images.find(name)
		if got := source(image); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
}

func source(image Image) string {
	if image.Mounts == nil {
		return ""
	}
	return image.Mounts[0].Source
}

// A pod's group may read what the API holds, and write what is the pod's own: programs refuse files of keys that a group may write.
func TestOwn(t *testing.T) {
	group := int64(os.Getgid())
	w := &worker{pod: &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{FSGroup: &group}}}}
	for toRead, want := range map[bool]os.FileMode{true: 0o440, false: 0o660} {
		directory := t.TempDir()
		file := filepath.Join(directory, "key")
		if err := os.WriteFile(file, nil, 0o400); err != nil {
			t.Fatal(err)
		}
		if err := w.own(directory, toRead); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("to be read %v: %v, %v", toRead, info.Mode(), err)
		}
	}
}
