// gVisor's runtime and its shim for containerd in one program, chosen by the name it is called by.
package main

import (
	"os"
	"path/filepath"
	"strings"

	runtime "gvisor.dev/gvisor/runsc/cli"
	shim "gvisor.dev/gvisor/shim/cli"
)

func main() {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "containerd-shim") {
		shim.Main()
		return
	}
	runtime.Main()
}
