// Package nextlevel makes up the feature level after level.Own, so that tests can try how a cluster comes to a level that the
// build which ships does not know.
//
// With it a cluster has members of two builds. To both, changes of users and roles are commands of the next level (Needs). The
// build that ships does not know such a command; a build of the next level knows it, and uses it once all members do. In all
// else both are the build that ships. The machines of such a cluster are opened with
//
//	apply.Options{Level: level.Own, Needs: nextlevel.Needs}       // the build that ships
//	apply.Options{Level: nextlevel.Level, Needs: nextlevel.Needs} // the next one
//
// A machine that is opened with an earlier level, such as level.First, stands for a build of an earlier release.
//
// It is for tests and the simulator: package tidy refuses any other import of it, and no setting of the product enables it.
//
// All functions may be called concurrently.
package nextlevel

import (
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
)

// Level is the level that the build which ships does not know.
const Level = level.Own + 1

// Needs is kv.Needs, but for changes of users and roles, which need the next level.
func Needs(payload []byte) (_ level.Level, known bool) {
	needs, known := kv.Needs(payload)
	if known && kv.IsAuth(payload) {
		needs = Level
	}
	return needs, known
}
