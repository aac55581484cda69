package objects_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/objects"
)

// Ensure that a tag is refused only if it names a release that certainly does not know the level.
func TestTooOld(t *testing.T) {
	for _, row := range []struct {
		image  string
		active uint32
		old    bool
	}{
		{"quorate:1.0.0", 1, false},
		{"quorate:1.0.0", 0, false}, // not known yet
		{"quorate:1.0.0", 2, true},
		{"registry.example.com:5000/quorate:v1.0.7-alpine", 2, true},
		{"quorate:1.0", 3, true},
		{"quorate:v1.1.0", 2, false},
		{"quorate:v1.1.0", uint32(level.Own) + 1, false}, // a later 1.1 is not this build's to judge
		{"quorate:v2.0.0", uint32(level.Own) + 1, false},
		{"quorate:0.9.0", 2, false}, // there was no such release: somebody's own number
		{"quorate:latest", 2, false},
		{"quorate", 2, false},
		{"registry.example.com:1.0/quorate", 2, false}, // that is a port
		{"quorate:1.0.0@sha256:ab", 2, false},
	} {
		why := objects.TooOld(row.image, row.active)
		if (why != "") != row.old || row.old && !strings.Contains(why, "release 1.0 knows feature level 1") {
			t.Errorf("%s at level %d: %q", row.image, row.active, why)
		}
	}
}

// Ensure that members of 1.0 get no flag which they do not know, so that the backup of the spec restarts none of them for nothing.
func TestPod_backupOf10(t *testing.T) {
	for version, flag := range map[string]bool{"1.0.0": false, "v1.1.0": true, "mine": true} {
		with := cluster(func(s *v1alpha1.QuorateClusterSpec) {
			s.Version, s.Backup = version, &v1alpha1.Backup{Place: "s3://b/p"}
		})
		without := cluster(func(s *v1alpha1.QuorateClusterSpec) { s.Version = version })
		args := strings.Join(objects.Pod(with, "kv-1", "", nil, nil).Spec.Containers[0].Args, " ")
		if strings.Contains(args, "--backup-places=s3://b/p") != flag || (objects.Template(with) != objects.Template(without)) != flag {
			t.Errorf("version %s: %s", version, args)
		}
	}
}
