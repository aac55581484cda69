package pages_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var kubernetesDir = flag.String("kubernetes", "",
	"directory of kubeadm, kubectl, kube-apiserver, kube-controller-manager and kube-scheduler: TestKubernetes runs with them")

// TestKubernetes runs the page's control plane on three members. Between its blocks come those of testdata/kubernetes.md.
func TestKubernetes(t *testing.T) {
	if *kubernetesDir == "" {
		t.Skip("wants programs of Kubernetes: make kubernetes")
	}
	if os.Getenv(insideVar) != "" {
		patience = 12 * time.Minute // the API server first compares its caches after 5 to 7.5 minutes
		all := blocks(t, sections(t, page(t, "../../docs/operate.md"), "1. ", "2. "))
		first, users, found := strings.Cut(sections(t, page(t, "../../docs/kubernetes-etcd.md"), "Run Kubernetes on Quorate"), "\n### 9. Users\n")
		if !found {
			t.Fatal("the page has no section about users")
		}
		days := page(t, "testdata/kubernetes.md")
		for _, part := range []string{first, sections(t, days, "Without users"), users, sections(t, days, "With users")} {
			all = append(all, blocks(t, part)...)
		}
		runBlocks(t, all, "m1", "m2", "m3", "cp1")
		return
	}
	dir := programs(t)
	for _, name := range []string{"kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		link(t, filepath.Join(*kubernetesDir, name), filepath.Join(dir, name))
	}
	link(t, filepath.Join(*kubernetesDir, "kubeadm"), filepath.Join(dir, kubeadmItself))
	for _, name := range []string{"kubeadm", "kubelet", "kms-plugin"} {
		link(t, ownPath(t), filepath.Join(dir, name))
	}
	runInside(t, dir, "-test.run", "^TestKubernetes$", "-test.v", "-test.timeout", "39m", "-kubernetes", *kubernetesDir)
}

func link(t *testing.T, file, name string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, name); err != nil {
		t.Fatal(err)
	}
}

// sections is the text of those sections of a page whose titles begin so.
func sections(t *testing.T, text string, titles ...string) string {
	t.Helper()
	parts := strings.Split(text, "\n## ")[1:]
	var out strings.Builder
	for _, title := range titles {
		found := false
		for _, part := range parts {
			if strings.HasPrefix(part, title) {
				out.WriteString("\n## " + part)
				found = true
			}
		}
		if !found {
			t.Fatalf("the page has no section %q", title)
		}
	}
	return out.String()
}
