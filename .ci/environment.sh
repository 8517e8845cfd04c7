# Functions for the scripts of CI; sourced by .ci/run, which starts them in the root of the checkout.
export PIP_DISABLE_PIP_VERSION_CHECK=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Where the wheel of this checkout is built once, for all parts of a run.
export ELMOKIT_WHEELS=${ELMOKIT_WHEELS:-$scratch/wheels}

# Make a fresh virtual environment and enter it.
new_environment() {
    local venv
    venv=$(mktemp -d -p "$scratch")
    python3 -m venv "$venv"
    export PATH="$venv/bin:$PATH" VIRTUAL_ENV="$venv"
}

# Build the wheel of this checkout, unless another part has.
build_wheel() {
    [ -d "$ELMOKIT_WHEELS" ] || pip wheel -q --no-deps --wheel-dir "$ELMOKIT_WHEELS" .
}

# Install packages; `.` and `.[extra]` are this checkout, whose wheel is built once. With `torch` as the first
# argument, its CPU build comes first:
#   install_with torch '.[sklearn,spacy]' pytest
install_with() {
    if [ "$1" = torch ]; then
        shift
        pip install -q torch==2.13.0
    fi
    build_wheel
    local wheel packages=() package
    wheel=$(ls "$ELMOKIT_WHEELS"/elmokit-*.whl)
    for package in "$@"; do
        case $package in
            .) packages+=("$wheel") ;;
            .\[*\]) packages+=("elmokit${package#.} @ file://$wheel") ;;
            *) packages+=("$package") ;;
        esac
    done
    pip install -q "${packages[@]}"
}
