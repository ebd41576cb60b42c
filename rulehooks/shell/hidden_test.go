package shell

import (
	"slices"
	"testing"
)

// Each of these starts a forbidden program by way of another, or of a text that is
// read at last.
func TestReadFinds(t *testing.T) {
	for _, text := range []string{
		// a shell's own ways
		`let 'x[$(rm -rf /)]'`, `let "x[$(rm -rf /)]"`, `[[ -v x[$(rm -rf /)] ]]`, `[[ -v 'x[$(rm -rf /)]' ]]`, `[[ 'x[$(rm -rf /)]' -eq 0 ]]`, `(( x['$(rm -rf /)'] ))`, `echo $(( x['$(rm -rf /)'] ))`,
		`printf -v 'x[$(rm -rf /)]' a`, `test -v 'x[$(rm -rf /)]'`, `[ -v 'x[$(rm -rf /)]' ]`, `read 'x[$(rm -rf /)]' <<< a`, `unset 'x[$(rm -rf /)]'`, `command printf -v 'x[$(rm -rf /)]'$y a`,
		`declare 'x[$(rm -rf /)]=1'`, `x='y[$(rm -rf /)]'; echo $((x))`, `x='$(rm -rf /)'; echo "${x@P}"`, `x='$(rm -rf /)'$y`, "x='`rm -rf /`'", `x=('$(rm -rf /)')`, `export PS4='$(rm -rf /)'; set -x`,
		`mapfile -C 'rm -rf /' -c 1 < x`, `readarray -c1 -C 'rm -rf /' x`, `compgen -C 'rm -rf /' x`, `PROMPT_COMMAND='rm -rf /'`, `export PROMPT_COMMAND='rm -rf /'`,
		`BASH_ENV=<(echo rm -rf /) bash -c true`, `ENV=<(echo rm -rf /) sh -i`, `env A=b PAGER='rm -rf /' man x`, `EDITOR='rm -rf /' crontab -e`, `GIT_SSH_COMMAND='rm -rf /' git fetch`,
		`alias ls='rm -rf /'; ls`, `trap 'rm -rf /' EXIT`, `eval 'rm -rf /'`, `source <(echo rm -rf /)`, ". /dev/stdin <<EOF\nrm -rf /\nEOF\n", ". /dev/fd/3 3<<EOF\nrm -rf /\nEOF\n", "sh //dev/stdin <<< 'rm -rf /'",
		`coproc rm -rf /`, `f() { rm -rf /; }`, "`true` rm -rf /", `- rm -rf /`, `noglob rm -rf /`, `echo "rm -rf /" | { sh; }`,
		// programs that start another
		`systemd-run --user -p A=b --unit x rm -rf /`, `fakeroot -- rm -rf /`, `unbuffer -p rm -rf /`, `script -c 'rm -rf /' x`, `script -q x rm -rf /`, `script -- rm -rf /`, `xvfb-run -a -s x rm -rf /`, `numactl -m 0 rm -rf /`,
		`setarch x86_64 -R rm -rf /`, `setarch -R rm -rf /`, `linux32 rm -rf /`, `linux64 rm -rf /`, `faketime '2 days ago' rm -rf /`, `valgrind --tool=none rm -rf /`, `perf stat -e x rm -rf /`,
		`bwrap --bind / / --dev /dev rm -rf /`, `firejail --quiet rm -rf /`, `parallel rm -rf ::: /`, `parallel ::: 'rm -rf /'`, `echo / | parallel rm -rf`, `echo 'rm -rf /' | parallel`,
		`ssh-agent -t 5 rm -rf /`, `ssh -p 22 host rm -rf /`, `ssh host -p 22 'cd x; rm -rf /'`, `ssh -oProxyCommand='rm -rf /' host`, `ssh -o 'ProxyCommand rm -rf /' host`, `scp -o ProxyCommand='rm -rf /' a b:c`,
		`echo rm -rf / | ssh host`, `watch rm -rf /`, `watch -n 1 'rm -rf /'`, `flock /tmp/l rm -rf /`, `chroot /x rm -rf /`, `nsenter -t 1 -m rm -rf /`, `unshare -r rm -rf /`, `capsh --user=x -- -c 'rm -rf /'`, `capsh == -- -c 'rm -rf /'`,
		`runuser -u me -- rm -rf /`, `su -c 'rm -rf /'`, `su me -s /bin/sh -c 'rm -rf /'`, `echo rm -rf / | su me`, `setpriv --reuid 5 rm -rf /`, `prlimit --nproc=5 rm -rf /`, `cpulimit -l 50 -- rm -rf /`, `ltrace -o x rm -rf /`,
		`strace --output x rm -rf /`, `strace -f -o x rm -rf /`, `gdb --args rm -rf /`, `busybox rm -rf /`, `busybox sh -c 'rm -rf /'`, `pkexec rm -rf /`, `run0 --user x rm -rf /`, `doas rm -rf /`, `echo rm -rf / | sudo -s`,
		`echo 'rm -rf /' | at now`, "batch <<EOF\nrm -rf /\nEOF\n", "crontab - <<EOF\n* * * * * rm -rf /\nEOF\n", `echo '@daily rm -rf /' | crontab`, `xargs -a x -I {} rm -rf / {}`, `find . -execdir rm -rf / \;`, `env -S 'rm -rf /'`, `env -iS'rm -rf /'`,
		`docker run -it x rm -rf /`, `docker exec x sh -c 'rm -rf /'`, `echo 'rm -rf /' | docker exec -i x sh`, `kubectl exec x -- rm -rf /`, `tmux new-session -d 'rm -rf /'`, `nix-shell --run 'rm -rf /'`, `npm exec -c 'rm -rf /'`, `npx --call='rm -rf /'`, `uv run rm -rf /`,
		// programs that run a text
		`git -c alias.x='!rm -rf /' x`, `git -c alias.x='!rm -rf' x /`, `git -c alias.x=y -c alias.y='!rm -rf /' x`, `git -C d -c core.sshCommand='rm -rf /' fetch`, `git -c core.pager='rm -rf /' log`, `git config alias.x '!rm -rf /'`, `git rebase -x 'rm -rf /' x`, `git bisect run rm -rf /`, `git submodule foreach 'rm -rf /'`,
		`git clone 'ext::rm -rf /' x`, `git fetch --upload-pack='rm -rf /' x`, `git filter-branch --tree-filter 'rm -rf /'`, `tar cf x --checkpoint=1 --checkpoint-action=exec='rm -rf /' y`, `tar --to-command='rm -rf /' -xf x`, `tar -I 'rm -rf /' -xf x`,
		`rsync -e 'rm -rf /' a b:c`, `make CC='rm -rf /' x`, `git archive --exec='rm -rf /' --remote=. x`, `fish -C 'rm -rf /' -c true`, `tcsh -c 'rm -rf /'`, `/lib64/ld-linux-x86-64.so.2 rm -rf /`, `repeat 1 rm -rf /`, `env x='a[$(rm -rf /)]' bash -c '((x))'`, `split --filter='rm -rf /' x`,
	} {
		t.Run(text, func(t *testing.T) {
			commands, _ := read(t, text)
			if !holds(commands, "rm", "-rf", "/") {
				t.Errorf("%q", shown(commands))
			}
		})
	}
}

// Each of these starts a forbidden program, or is said to start what nobody can read, by
// what shells and programs do that is easily overlooked.
func TestReadHidesNothing(t *testing.T) {
	for topic, texts := range map[string][]string{
		"carriage returns": {
			"ls\x00; rm -rf /", "ls \xff; rm -rf /", "rm\u00a0-rf\u00a0/",
			"echo \\\r\nrm -rf /",
			": <<EOF\r\nEOF\n: <<'X'\nEOF\r\nrm -rf /\nX",
		},
		"comments and ends": {
			"echo # \\\nrm -rf /", ": a;# b \\\n rm -rf /", "#\\\nrm -rf /", "rm -rf /\\",
		},
		"dollar quotes": {
			`echo $'\\'; rm -rf /; echo $'`, `$"$X" -rf /`,
			`$'rm\0x' -rf /`,
			`$'rm\x00x' -rf /`,
			`$'rm\u0000x' -rf /`,
			`$'\562m' -rf /`,
			`$'\x{72}m' -rf /`,
		},
		"options of shells": {
			`bash +c 'rm -rf /'`, `curl x | bash --rcfile /dev/stdin -ic true`, `bash --rcfile=x -c y`, `bash - <<< 'rm -rf /'`, `bash -c -- 'rm -rf /'`, `bash --frobnicate x -c 'rm -rf /'`, `bash -login -c 'rm -rf /'`, `zsh -oextendedglob -c 'rm -rf /'`, `bash -n +n -c 'rm -rf /'`, `bash -H -c 'x'`, `bash -k -c x`, `bash -o history -c x`, "bash -i <<< 'x\n!!'", `bash-5.2 -c 'rm -rf /'`, `bash.exe -c 'rm -rf /'`, `fish --command='rm -rf /'`, `fish --command 'rm -rf /'`, `bash "-$X" 'rm -rf /'`,
			`bash -oc pipefail 'rm -rf /'`,
			`bash -Oc extglob 'rm -rf /'`,
			`bash -oe pipefail -c 'rm -rf /'`,
			`bash -ceou pipefail 'rm -rf /'`,
			`sh -oc noglob 'rm -rf /'`,
			`bash -rcfile /dev/null -c 'rm -rf /'`,
			`bash -init-file /dev/null -c 'rm -rf /'`,
		},
		"other names for programs": {
			`declare -n y=BASH_CMDS; y[x]=/bin/rm; x -rf /`, `declare BASH_'CMDS[x]=/bin/rm'; x -rf /`, `: ${BASH_ENV:=x}; bash -c y`, `for PROMPT_COMMAND in 'rm -rf /'; do :; done`, `PROMPT_COMMAND=('rm -rf /')`, `printf -v PROMPT_COMMAND 'rm -rf /'`, `printf -vBASH_ENV x`, `mapfile BASH_CMDS`, `read "$X" <<< y`, `export "$X=y"`, `functions[x]='rm -rf /'; x`, `commands[x]=/bin/rm; x -rf /`, `aliases=(x 'rm -rf /'); x`, `enable -f ./x.so y`, `fc -s`, `set -H`, `set -k`,
			`BASH_CMDS[x]=/bin/rm; x -rf /`,
			`BASH_CMDS+=([x]=/bin/rm); x -rf /`,
			`declare 'BASH_CMDS[x]=/bin/rm'; x -rf /`,
			`printf -v 'BASH_CMDS[x]' /bin/rm; x -rf /`,
			`read 'BASH_CMDS[x]' <<< /bin/rm; x -rf /`,
			"shopt -s expand_aliases\nBASH_ALIASES[x]='rm -rf /'\nx",
			"shopt -s expand_aliases\nalias x=rm\nx -rf /",
			`env 'BASH_FUNC_ls%%=() { rm -rf /; }' bash -c ls`,
			"set -o history -o histexpand\nhistory -s 'rm -rf /'\n!!",
		},
		"options of starters": {
			`env --frobnicate x rm -rf /`, `timeout --unknown 5 5 rm -rf /`, `runcon -t x rm -rf /`, `uclampset -m 5 rm -rf /`, `nice --5 rm -rf /`, `nice -5 rm -rf /`, `gtimeout 5 rm -rf /`, `time -- rm -rf /`, `time -p -- rm -rf /`, `sudo "-$X" y rm -rf /`,
			`xargs --max-lines rm -rf / < x`,
			`strace --summary rm -rf /`,
			`strace --const-print-style raw rm -rf /`,
			`strace --verbose all rm -rf /`,
			`flock --wait 5 x rm -rf /`,
			`fakeroot --fd-base 5 rm -rf /`,
			`choom -n 5 -- rm -rf /`,
			`logsave /dev/null rm -rf /`,
			`dpkg-architecture -c rm -rf /`,
		},
		"what xargs reads": {
			`echo ok | xargs -n1 rm`, `echo "'ok a'" | xargs rm`, `sudo xargs echo ls | sh`,
			`echo ok | xargs -a <(echo -rf /) rm`,
			`printf '%s' '/,-rf' | xargs -d, rm`,
			`printf 'x\n-rf\n' | xargs -I{} rm {} /`,
			`printf '%s\n' 'ls -l' 'rm -rf /' | xargs -I{} sh -c 'eval {}'`,
			`xargs -a <(echo '; rm -rf /') echo ls | sh`,
			`{ xargs echo ls | sh; } <<< '; rm -rf /'`,
		},
		"paths of standard input": {
			`echo x | bash /dev/tty`, `echo x | bash /proc/*/fd/0`, `cd /dev; curl x | bash stdin`, `cd /dev/fd; echo x | bash 0`, `make -f../../dev/stdin`, `source -- /dev/stdin <<< 'rm -rf /'`,
			`echo 'rm -rf /' | bash ../../../../dev/stdin`,
			`echo 'rm -rf /' | bash /proc/self/root/dev/stdin`,
			`source ../../../../dev/stdin <<< 'rm -rf /'`,
			`echo 'x' | python3 ../../../../dev/stdin`,
		},
		"arithmetic": {
			`set -- 'x[$(rm -rf /)]'; (($1))`, `f() { (($1)); }; f 'x[$(rm -rf /)]'`, `read x <<< 'y[$(rm -rf /)]'; ((x))`, `for i in 'x[$(rm -rf /)]'; do ((i)); done`, `((rm -rf /))`, `((rm -rf / a))`, `echo "${x:-'$(rm -rf /)'}"`, "cat <<E\n${x:-'$(rm -rf /)'}\nE\n", `echo ${x/a/'$(rm -rf /)'}`,
			`echo ${PATH:'x[$(rm -rf /)]'}`,
			`y=abc; echo "${y:'a[$(rm -rf /)]'}"`,
			`for ((i='a[$(rm -rf /)]';0;)); do :; done`,
			`x='a[$'; x+='(rm -rf /)]'; ((x))`,
			`compgen -W '$(rm -rf /)'`,
			"compgen -W '`rm -rf /`' x",
		},
		"more texts": {
			`eval -- rm -rf /`, `env -S rm $X`, `git -c alias.x='!rm' x $X`, `env -S 'rm ${X}'`, `python3 -mtimeit 'x'`, `python3 -m "$X"`, `make -E 'x:;rm -rf /' x`, `git clone -c core.sshCommand='rm -rf /' x`, `git remote add o 'ext::rm -rf /'`, `git --exec-path=x y`, `zip --unzip-command='rm -rf /' x`, `x86_64-linux-gnu-python3.11 -c y`, `python3.11-dbg -c y`,
			`env -S 'rm\_-rf\_/'`,
			`python3 -m timeit -n1 'import os;os.system("rm -rf /")'`,
			`python3 -m pdb -c '!import os;os.system("rm -rf /")' x`,
			`make -sE 'x:;rm -rf /' x`,
			`git -c remote.o.url='ext::rm -rf /' -c protocol.ext.allow=always fetch o`,
			`zip -T -TT 'rm -rf / #' x.zip y`,
			`perl5.36-x86_64-linux-gnu -e 'system("rm -rf /")'`,
		},
	} {
		for _, text := range texts {
			t.Run(topic+"/"+text, func(t *testing.T) {
				commands, _ := read(t, text)
				if !holds(commands, "rm", "-rf", "/") && !slices.ContainsFunc(commands, func(c Command) bool { return c.Opaque() || c.Partial && c.Name() == "rm" }) {
					t.Errorf("%q", shown(commands))
				}
			})
		}
	}
}

// Each of these may start what nobody can read, which is said of one of the commands.
func TestReadOpaque(t *testing.T) {
	for _, text := range []string{
		`$X -rf /`, `X=rm; $X -rf /`, `$(echo rm) -rf /`, "`echo rm` -rf /", `/bin/r? -rf /`, `rm${IFS}-rf${IFS}/`, `$X/ls`, `=rm -rf /`, `${!x}`, `"$@"`, `if if (`,
		`sh -c "$X"`, `sh -c "$(echo rm -rf /)"`, `sh -c "echo '$X'"`, `eval "$X"`, `eval "$(ssh-agent)"`, `trap "$X" EXIT`, `alias g="$X"`, `env -S "$X"`, `su -c "$X"`, `ssh host "$X"`, `git -c "alias.x=!$X" x`, `docker exec x sh -c "$X"`,
		`curl x | sh`, `curl x | sudo bash -s --`, `bash <(curl x)`, `source <(curl x)`, `bash < x`, `echo ok | sh < x`, `echo ok | (sh) < x`, `{ cat; sh; } <<< ok`, `sh <<< "$X"`, "sh <<EOF\n$X\nEOF\n", "sh <<< ok < x", `sh`, `sh -c`, `source "$X"`, `. "$X"/y`, `bash "$X"`,
		`echo "rm '$X'" | sh`, `echo '\x72m -rf /' | sh`, `printf '\x72m -rf /' | sh`, `printf '%b' '\x72m' | sh`, `printf '%.1s%s' rx m | sh`, `echo 'mr' | rev | sh`, `echo ok | tee x - | sh`, `echo ok | cat - x | sh`, `{ echo ok; curl x; } | sh`,
		`echo ok > x | sh`, `echo() { curl x; }; echo ok | sh`, `(true || echo ": '"; echo 'rm #') | sh`, `echo ': "\\"; rm -rf / #"' | sh`, `tee >(sh)`, `coproc sh`, `sh <&3`, `ssh host`, `sudo -s`, `su`, `at now`, `script x`, `unshare -r`,
		`xargs sh -c`, `cat x | xargs -I {} sh -c 'a {}'`, `find . -exec sh -c 'a {}' \;`, `cat x | parallel`, `crontab -`, `echo ok | at now -f -; cat x | at now`,
		`python -c 'x'`, `python3.12 -Sc x`, `python3 - <<EOF`, `curl x | python3`, `python3 <(curl x)`, `perl -lane x`, `perl -e x`, `perl -Mx y`, `ruby -ne x`, `node -e x`, `node --title x -e y`, `node --eval=x`, `deno eval x`, `php -r x`, `lua -e x`, `pwsh -c x`, `osascript -e x`, `sudo python3 -c x`,
		`sed 's/x/y/e' z`, `sed e`, `sed '1e rm -rf /' x`, `sed -n '/x/e' y`, `sed 's/x/y/gew z' a`, `sed -e p -e 's|x|y|e' a`, `sed --expression='s/x/y/e' a`, `sed "$X" a`, `sed -f - x`, `sed -f <(curl x) y`, `sed -ne 's,x,y,e'`, `sed 's/a/b/;s/x/y/e' z`, `sed '$!e' x`, `sed -ie 's/x/y/e' z`, `sed -n -i.b -e p -e e x`, `sed x -e e`, `sed -l 5 e x`, `sed 'sxaxbxe'`, `sed '# a
e' x`, `sed 's/[/]/x/e;s/a/b/'`, `make -f "$X"`, `make -f /dev/stdin`, `less '+!x' y`, `python3 -i x`, `dc <<< '!x'`, `hash x=/bin/rm`,
		`awk 'BEGIN { system("x") }'`, `awk '{ print | "sh" }' x`, `awk 'BEGIN { "x" | getline }'`, `awk "$X" y`, `awk -f - x`, `gawk -e 'BEGIN { f = "x"; @f() }'`,
		`vim -c '!x'`, `vim '+!x' y`, `ed x`, `ex -s y`, `emacs --batch --eval x`, `gdb -ex '!x'`, "make -f - <<EOF\nx:\nEOF\n", `make -f- x`, `make --file=/dev/stdin`, `make --eval='$(shell x)'`, `make SHELL=x`,
		`BASH_ENV=x bash y`, `ENV=x; sh y`, `export BASH_ENV=x`, `LD_PRELOAD=./x ls`, `env LD_PRELOAD=./x ls`, `sudo LD_PRELOAD=./x ls`, `PROMPT_COMMAND="$X"`, `echo ${x@P}`, `hash -p ./x ls`, `git --config-env=alias.x=Y x`, `[[ -v $'x[\x24(y)]' ]]`, `tar xIf x y`,
	} {
		t.Run(text, func(t *testing.T) {
			if commands, _ := read(t, text); !slices.ContainsFunc(commands, Command.Opaque) {
				t.Errorf("%q", shown(commands))
			}
		})
	}
}

// What agents do all day is none of that.
func TestReadIsNotOpaque(t *testing.T) {
	for _, text := range []string{
		`ls -la | head -n 5 > x 2>&1`, `cd "$HOME/x" && go test ./... && echo "done: $?"`, `for f in *.go; do gofmt -l "$f"; done`, `X=$(git rev-parse HEAD); echo "$X"`, `echo $((i + 1)) "${a[i]}" "${x:-y}"`, `[[ -f $X && $Y == z* ]] && [ -n "$X" ] && test -d x`, `((i++))`, `let i=i+1`,
		`export A=b PATH="$HOME/bin:$PATH"`, `bash x.sh`, `bash -c 'ls | wc -l'`, `sh -c 'echo "$1"' _ x`, `. venv/bin/activate`, `source ~/.profile`, "cat > x <<'EOF'\n$(y) `z`\nEOF\n", "bash <<'EOF'\nls \"$X\"\nEOF\n", `echo 'ls -l' | sh`, `printf '%s\n' ls | sh`, `source <(echo ls)`,
		`git commit -m 'use $(x) and [y]'`, `git -c user.name='A B' commit`, `git push -u origin x`, `git log --format='%h | %s'`, `git -c core.pager=cat log`, `GIT_PAGER=cat git log`, `GIT_EDITOR=true git rebase --continue`, `git config user.name x`,
		`python3 x.py -c y`, `python -m pytest -k 'a or b'`, `python3 --version`, `node x.js`, `node --version`, `perl x.pl`, `ruby x.rb`, `npm run build`, `npx tsc -p .`, `docker ps -a`, `docker run -v "$(pwd):/x" -it y make`, `kubectl get pods -n x`, `uv run pytest`,
		`set -euo pipefail; ls`, `bash -euo pipefail -c 'ls'`, `bash -lc ls`, `bash --norc x.sh`, `declare -a x=(a b)`, `declare -A m; m[a]=b`, `local x=1`, `read -r line < x`, `while IFS= read -r -d '' f; do ls "$f"; done < x`, `mapfile -t x < y`, `printf -v x %s y`, `getopts ab: o`, `commands=a; functions=3`,
		`env -u A B=c ls`, `sudo -n -u me ls`, `timeout -k 1 --foreground 5 ls`, `nice -n 5 ls`, `nice -5 ls`, `stdbuf -oL ls`, `flock -n x ls`, `strace -f -e trace=file ls`, `strace --follow-forks ls`, `xargs -0 -r ls < x`, `unshare --map-root-user ls`, `setarch -R ls`, `valgrind --leak-check=full ls`, `ionice -c3 ls`, `time -p ls`, `ls # a comment`, "ls \\\n  -l # why\nls", `x=~/y`, `re='^(a|b)$'; [[ $x =~ $re ]]`,
		`python3 -m venv x`, `python3 -m http.server`, `python3.11 x.py`, `make -C x -sj4 all`, `git clone -c user.name=x https://y`, `zip -r x.zip y`, `history`, `fc -l`, `((i += 2)); ((i > 3)) && ls`, `echo "${x:-'a'}"`, `complete -W 'a b' x`, `$'ls' -l`, `printf '%s' $'a	bA'`,
		`sed -n '1,20p' x`, `sed -i 's/a/b/g' x`, `sed -i.bak -e 's|a\|b|c|' -e '/x/d' y`, `sed -E 's/(a)+/\1/; s/b//2' x`, `sed -n '/a/,/b/p;$p' x`, `sed ':a;N;$!ba;s/\n/ /g' x`, `sed '$a\ text' x`, `sed 10q x`, `sed -n "5p" x`, `sed '/^#/d; /^$/d' x`, `sed 's#/a#/b#' x`, `sed -n -e 3p x`, `sed y/abc/xyz/`, `sed '/a/{n;s/b/c/;}' x`,
		`awk '{ print $1 }' "$X"`, `awk -F: '$1 == "a" || $2 { n++ } END { print n }' x`, `awk -v x="a" '{ print x }' y`, `vim x`, `make -j4 all`, `make -f x.mk CC=gcc`, `make CFLAGS='-O2 -g' VERSION="$V" x`, `sed -Ei "s/a/b/" x`, `make --file=x`, `find . -name '*.o' -delete`, `find . -exec grep -l x {} +`, `git ls-files | xargs wc -l`,
		`tar -czf x.tar.gz y`, `tar xzf x`, `crontab -l`, `at -l`, `trap - EXIT`, `type ls`, `alias`, `printf '[%s] $(x)\n' y`, `printf "[$(date)] x"`, `timeout 5 make`, `nohup ./x &`, `rsync -a x y`, `curl -o x https://y`, `ssh -V`, `bash --version`,
	} {
		t.Run(text, func(t *testing.T) {
			commands, _ := read(t, text)
			if i := slices.IndexFunc(commands, Command.Opaque); i >= 0 {
				t.Errorf("%q: %+v", shown(commands), commands[i])
			}
		})
	}
}

// A program that gets more arguments than stand there is not known by these.
func TestReadPartial(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{`cat x | xargs rm`, true}, {`xargs -n1 sudo rm -f`, true}, {`echo "$X" | xargs rm`, true}, {`echo a b | xargs rm`, false}, {`xargs -I{} rm {}`, false}, {`rm a`, false},
	} {
		commands, _ := read(t, tt.text)
		if got := slices.ContainsFunc(commands, func(c Command) bool { return c.Partial && c.Name() == "rm" }); got != tt.want {
			t.Errorf("%s: %v in %+v", tt.text, got, commands)
		}
	}
}
