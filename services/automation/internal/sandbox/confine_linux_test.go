package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker has no files, no environment and no descriptors but its pipes.
func TestConfinement(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	run(t, p, js(`function main() {}`))
	proc := fmt.Sprintf("/proc/%d/", theWorker(t, p).cmd.Process.Pid)
	limits, err := os.ReadFile(proc + "limits")
	require.NoError(t, err)
	require.Regexp(t, `Max open files +0 +0`, string(limits))
	require.Regexp(t, `Max file size +0 +0`, string(limits))
	require.Regexp(t, `Max cpu time +600 +600`, string(limits))
	require.NotRegexp(t, `Max data size +unlimited`, string(limits))
	files, err := os.ReadDir(proc + "fd")
	require.NoError(t, err)
	for _, f := range files {
		target, err := os.Readlink(proc + "fd/" + f.Name())
		require.NoError(t, err)
		require.Regexp(t, `^(pipe|anon_inode):`, target)
	}
	threads, err := os.ReadDir(proc + "task")
	require.NoError(t, err)
	for _, thread := range threads {
		stat, err := os.ReadFile(proc + "task/" + thread.Name() + "/stat")
		require.NoError(t, err)
		fields := strings.Fields(string(stat)[bytes.LastIndexByte(stat, ')'):])
		require.Equal(t, strconv.Itoa(nice), fields[17], "the priority of a thread")
	}
	environment, err := os.ReadFile(proc + "environ")
	require.NoError(t, err)
	require.Equal(t, "IDP_SANDBOX_WORKER=1\x00GOMAXPROCS=2\x00GOTRACEBACK=none\x00TZ=UTC\x00", string(environment))
}
