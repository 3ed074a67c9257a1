#compdef mt
# zsh completion of mt: what may stand at the cursor is asked of mt itself (mt __complete).
# To use it at once: eval "$(mt completion zsh)"

_mt()
{
    local -a lines whole open whole_shown open_shown
    local line value shown files=0

    lines=("${(@f)$("${words[1]}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        [[ -n $line ]] || continue
        if [[ $line == :files ]]; then
            files=1
            continue
        fi
        value=${line%%$'\t'*}
        shown=${line/$'\t'/  }
        if [[ $value == *[/=:] ]]; then
            open+=("$value")
            open_shown+=("$shown")
        else
            whole+=("$value")
            whole_shown+=("$shown")
        fi
    done
    (( $#whole )) && compadd -l -d whole_shown -a whole
    (( $#open )) && compadd -l -S '' -d open_shown -a open
    (( files )) && _files
    return 0
}
if [[ ${funcstack[1]} == _mt ]]; then
    _mt "$@"
else
    compdef _mt mt
fi
